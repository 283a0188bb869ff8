"""One PyBullet world: a floor, a robot, batched readings, and restarts that repeat bit for bit."""

import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from adac.errors import missing_extra

try:
    import pybullet as pybullet
    import pybullet_data as pybullet_data
except ModuleNotFoundError as error:
    raise missing_extra("A Roboschool task", "pybullet") from error

Vector = NDArray[np.float64]
Triple = tuple[float, float, float]

STEP_SECONDS = 0.0165
SELF_COLLISION = (
    pybullet.URDF_USE_SELF_COLLISION | pybullet.URDF_USE_SELF_COLLISION_EXCLUDE_ALL_PARENTS
)
BASE = -1  # Bullet's link number of the root
DEFAULT_GROUP, ALL_GROUPS = 1, -1  # what Bullet gives to every link of a URDF


class Reading(NamedTuple):
    """What the simulator says after a step, in its own units (plain floats: faster than arrays)."""

    links: list[Triple]  # centres of mass of all links but the root
    body: Triple  # centre of mass of the body part
    rotation: Sequence[float]  # of the body part, x y z w
    velocity: Triple  # of the body part
    joints: Vector  # [J, 2] position and speed of the actuated joints


class Contacts(NamedTuple):
    """Links (by number) that touch the floor, and those that touch anything else."""

    floor: frozenset[int]
    other: frozenset[int]


@dataclass(frozen=True)
class Joints:
    """The actuated joints, in Bullet's order."""

    names: tuple[str, ...]
    numbers: tuple[int, ...]
    lower: Vector
    upper: Vector
    effort: Vector  # 0 where the model states none
    top_speed: Vector  # 0 where the model states none


class Loader(Protocol):
    """Puts one robot into a client and gives its number."""

    def __call__(self, client: int, *, visuals: bool) -> int: ...


def load_mjcf(file: str, client: int, *, visuals: bool) -> int:
    """Load a robot of `pybullet_data` (the same files as Roboschool's, byte for byte)."""
    del visuals  # made of the collision shapes at no cost
    path = f"{pybullet_data.getDataPath()}/mjcf/{file}"
    (body,) = pybullet.loadMJCF(path, flags=SELF_COLLISION, physicsClientId=client)
    return int(body)


def link_names(body: int, client: int) -> tuple[str, list[str]]:
    """The root's name, and the other links' in the order of their numbers."""
    root = pybullet.getBodyInfo(body, physicsClientId=client)[0].decode()
    joints = range(pybullet.getNumJoints(body, physicsClientId=client))
    infos = [pybullet.getJointInfo(body, joint, physicsClientId=client) for joint in joints]
    return root, [info[12].decode() for info in infos]


class World:
    """A client of its own, so that worlds of one process share nothing."""

    def __init__(
        self, load: Loader, body_part: str, substeps: int, *, compound: bool, visuals: bool
    ) -> None:
        self.client = int(pybullet.connect(pybullet.DIRECT))
        self._disconnect = weakref.finalize(self, pybullet.disconnect, self.client)
        self._compound = compound
        self._configure(substeps)
        (self.floor,) = pybullet.loadMJCF(
            f"{pybullet_data.getDataPath()}/mjcf/ground_plane.xml", physicsClientId=self.client
        )
        self.robot = load(self.client, visuals=visuals)
        infos = [
            pybullet.getJointInfo(self.robot, number, physicsClientId=self.client)
            for number in range(pybullet.getNumJoints(self.robot, physicsClientId=self.client))
        ]
        self.link_numbers = {info[12].decode(): number for number, info in enumerate(infos)}
        root = pybullet.getBodyInfo(self.robot, physicsClientId=self.client)[0].decode()
        self._body = BASE if root == body_part else self.link_numbers[body_part]
        self._links = list(range(len(infos)))
        self.joints = _actuated(infos)
        self._free_all_motors(infos)
        self._start = pybullet.saveState(physicsClientId=self.client)

    def _configure(self, substeps: int) -> None:
        pybullet.setGravity(0, 0, -9.8, physicsClientId=self.client)
        pybullet.setPhysicsEngineParameter(
            fixedTimeStep=STEP_SECONDS,
            numSubSteps=substeps,
            numSolverIterations=5,
            contactERP=0.9,
            enableConeFriction=0,
            deterministicOverlappingPairs=1,
            physicsClientId=self.client,
        )

    def _free_all_motors(self, infos: Sequence[Any]) -> None:
        # Bullet loads every joint with a velocity motor that brakes it.
        moving = [n for n, info in enumerate(infos) if info[2] != pybullet.JOINT_FIXED]
        pybullet.setJointMotorControlArray(
            self.robot,
            moving,
            pybullet.VELOCITY_CONTROL,
            forces=[0.0] * len(moving),
            physicsClientId=self.client,
        )

    def restart(self, positions: Vector, root: Sequence[float] | None) -> None:
        """Back to the loaded state; then joints at `positions`, and the root upright at `root`."""
        if self._compound:
            self._forget_contacts()
        pybullet.restoreState(self._start, physicsClientId=self.client)
        for number, position in zip(self.joints.numbers, positions, strict=True):
            pybullet.resetJointState(self.robot, number, position, 0.0, physicsClientId=self.client)
        if root is not None:
            pybullet.resetBasePositionAndOrientation(
                self.robot, root, (0.0, 0.0, 0.0, 1.0), physicsClientId=self.client
            )

    def _forget_contacts(self) -> None:
        # Restoring a state leaves the contact caches of compound shapes that stay near each other.
        # Setting the filter (to what it was) makes Bullet drop a link's pairs, caches and all.
        for link in (BASE, *self._links):
            pybullet.setCollisionFilterGroupMask(
                self.robot, link, DEFAULT_GROUP, ALL_GROUPS, physicsClientId=self.client
            )

    def step(self, torques: Vector) -> None:
        pybullet.setJointMotorControlArray(
            self.robot,
            self.joints.numbers,
            pybullet.TORQUE_CONTROL,
            forces=torques.tolist(),
            physicsClientId=self.client,
        )
        pybullet.stepSimulation(physicsClientId=self.client)

    def read(self) -> Reading:
        rooted = self._body == BASE
        links = pybullet.getLinkStates(
            self.robot,
            self._links,
            computeLinkVelocity=not rooted,
            physicsClientId=self.client,
        )
        joints = pybullet.getJointStates(
            self.robot, self.joints.numbers, physicsClientId=self.client
        )
        if rooted:
            position, rotation = pybullet.getBasePositionAndOrientation(
                self.robot, physicsClientId=self.client
            )
            velocity, _ = pybullet.getBaseVelocity(self.robot, physicsClientId=self.client)
        else:
            position, rotation, *_, velocity, _ = links[self._body]
        return Reading(
            links=[link[0] for link in links],
            body=position,
            rotation=rotation,
            velocity=velocity,
            joints=np.array([joint[:2] for joint in joints]),
        )

    def contacts(self) -> Contacts:
        floor: set[int] = set()
        other: set[int] = set()
        for point in pybullet.getContactPoints(self.robot, physicsClientId=self.client):
            _, _, body_b, link_a, link_b, *_ = point
            if body_b == self.floor:
                floor.add(link_a)
            else:  # itself: a pair is reported once
                other.update((link_a, link_b))
        return Contacts(frozenset(floor), frozenset(other))

    def close(self) -> None:
        self._disconnect()


def _actuated(infos: Sequence[Any]) -> Joints:
    chosen = [
        info
        for info in infos
        if info[2] != pybullet.JOINT_FIXED and not info[1].startswith(b"ignore")
    ]
    columns = list(zip(*chosen, strict=True))
    return Joints(
        names=tuple(name.decode() for name in columns[1]),
        numbers=columns[0],
        lower=np.array(columns[8]),
        upper=np.array(columns[9]),
        effort=np.array(columns[10]),
        top_speed=np.array(columns[11]),
    )


def roll_pitch_yaw(rotation: Sequence[float]) -> tuple[float, float, float]:
    """Euler angles of a unit quaternion (x, y, z, w), applied in the order roll, pitch, yaw."""
    x, y, z, w = rotation
    roll = math.atan2(2 * (y * z + x * w), w * w + z * z - x * x - y * y)
    pitch = math.asin(min(1.0, max(-1.0, 2 * (y * w - x * z))))
    yaw = math.atan2(2 * (x * y + z * w), w * w + x * x - y * y - z * z)
    return roll, pitch, yaw


def forward(rotation: Sequence[float]) -> Triple:
    """The body's own x axis in the world."""
    x, y, z, w = rotation
    return 1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)
