"""Atlas: its description is read from the `roboschool` distribution, which is never imported."""

import importlib.metadata
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np

from adac.envs.roboschool.bullet import BASE, SELF_COLLISION, Vector, link_names, pybullet
from adac.errors import UserError

URDF = "models_robot/atlas_description/urdf/atlas_v4_with_multisense.urdf"
INSTALL = "pip install --no-deps roboschool==1.0.34"
FRICTION = 0.8
# What Roboschool's Bullet added to half extents when it took inertias: to cylinders, to any shape.
CYLINDER_MARGIN = 0.041
SHAPE_MARGIN = 0.001


def urdf_path() -> Path:
    """The description among the files of the installed distribution."""
    try:
        files = importlib.metadata.distribution("roboschool").files or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if file.as_posix().endswith(URDF) and path.is_file():
            return path
    raise UserError(f"Atlas needs the robot description that Roboschool ships: {INSTALL}")


def load_atlas(client: int, *, visuals: bool) -> int:
    """Load Atlas with Roboschool's friction and inertias."""
    path = urdf_path()
    flags = SELF_COLLISION | (0 if visuals else pybullet.URDF_IGNORE_VISUAL_SHAPES)
    body = int(pybullet.loadURDF(str(path), flags=flags, physicsClientId=client))
    inertias = box_inertias(path)
    root, links = link_names(body, client)
    for number, name in enumerate([root, *links], start=BASE):
        pybullet.changeDynamics(
            body,
            number,
            lateralFriction=FRICTION,
            localInertiaDiagonal=inertias[name].tolist(),
            physicsClientId=client,
        )
    return body


def box_inertias(path: Path, cylinder_margin: float = CYLINDER_MARGIN) -> dict[str, Vector]:
    """Per link, the principal inertia of a solid box around its collision shapes."""
    inertias = {}
    for link in ElementTree.parse(path).getroot().iter("link"):
        mass = float(_child(link, "inertial/mass").attrib["value"])
        x, y, z = _sides(link, cylinder_margin) ** 2
        inertias[link.attrib["name"]] = mass / 12 * np.array([y + z, x + z, x + y])
    return inertias


def _sides(link: ElementTree.Element, cylinder_margin: float) -> Vector:
    # Aligned with the link, as the inertial frames of all of Atlas's links are.
    low, high = np.zeros((1, 3)), np.zeros((1, 3))
    shapes = [_centre_and_reach(shape, cylinder_margin) for shape in link.findall("collision")]
    if shapes:
        centres, reaches = map(np.array, zip(*shapes, strict=True))
        low, high = centres - reaches, centres + reaches
    sides: Vector = high.max(axis=0) - low.min(axis=0) + 2 * SHAPE_MARGIN
    return sides


def _centre_and_reach(
    collision: ElementTree.Element, cylinder_margin: float
) -> tuple[Vector, Vector]:
    origin = _child(collision, "origin").attrib
    quaternion = pybullet.getQuaternionFromEuler(_numbers(origin["rpy"]).tolist())
    rotation = np.array(pybullet.getMatrixFromQuaternion(quaternion)).reshape(3, 3)
    half = _half_extents(_child(collision, "geometry")[0], cylinder_margin)
    return _numbers(origin["xyz"]), np.abs(rotation) @ half


def _half_extents(shape: ElementTree.Element, cylinder_margin: float) -> Vector:
    if shape.tag == "box":
        return _numbers(shape.attrib["size"]) / 2
    radius = float(shape.attrib["radius"])
    if shape.tag == "sphere":
        return np.full(3, radius)
    return np.array([radius, radius, float(shape.attrib["length"]) / 2]) + cylinder_margin


def _child(element: ElementTree.Element, path: str) -> ElementTree.Element:
    found = element.find(path)
    if found is None:
        raise UserError(f"Atlas's description has no {path}; install it again: {INSTALL}")
    return found


def _numbers(text: str) -> Vector:
    return np.array([float(word) for word in text.split()])
