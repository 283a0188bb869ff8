"""The five robots. A new robot is a value here, not a class."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from adac.envs.roboschool.atlas import load_atlas
from adac.envs.roboschool.bullet import Loader, load_mjcf
from adac.envs.roboschool.camera import View


class Posture(Protocol):
    """What an alive rule may look at."""

    @property
    def height(self) -> float: ...
    @property
    def pitch(self) -> float: ...
    def height_of(self, link: str) -> float: ...
    def at_limit(self, joint: str) -> bool: ...
    def on_floor(self, foot: str) -> bool: ...


@dataclass(frozen=True)
class Robot:
    """All in which one walker differs from another."""

    load: Loader
    body: str  # the part whose height, attitude and velocity are observed
    feet: tuple[str, ...]  # the links whose contacts are observed
    alive: Callable[[Posture], float]  # negative ends the episode
    power: float  # torque = power * effort * action
    effort: Mapping[str, float] = field(default_factory=dict)  # where not the model's own, or 100
    substeps: int = 4
    compound: bool = False  # links of several shapes that are near each other from the start
    start: tuple[float, float, float] | None = None  # of the root; None leaves it as loaded
    reference_height: float | None = None  # None takes the height at the start
    # Roboschool's Bullet added the first hinge's velocity, along the body's x axis, to the velocity
    # of a body part that hangs on sliders; its published policies rely on it.
    slider_slip: bool = False
    view: View = field(default_factory=View)


def _upright(posture: Posture) -> float:
    return 1.0 if posture.height > 0.8 and abs(posture.pitch) < 1.0 else -1.0


def _above_ground(posture: Posture) -> float:
    return 1.0 if posture.height > 0.26 else -1.0  # the torso is a sphere of radius 0.25


def _on_its_feet(posture: Posture) -> float:
    legs = ("fshin", "fthigh", "bshin", "bthigh")
    fallen = abs(posture.pitch) >= 1.0 or any(posture.on_floor(leg) for leg in legs)
    return -1.0 if fallen else 1.0


def _head_up(posture: Posture) -> float:
    stiff_knees = posture.at_limit("l_leg_kny") + posture.at_limit("r_leg_kny")
    return 4.0 - stiff_knees if posture.height_of("head") > 1.3 else -1.0


ROBOTS: Mapping[str, Robot] = {
    "Ant": Robot(
        load=partial(load_mjcf, "ant.xml"),
        body="torso",
        feet=("front_left_foot", "front_right_foot", "left_back_foot", "right_back_foot"),
        alive=_above_ground,
        power=2.5,
        view=View(distance=3.2, height=0.5),
    ),
    "Hopper": Robot(
        load=partial(load_mjcf, "hopper.xml"),
        body="torso",
        feet=("foot",),
        alive=_upright,
        power=0.75,
        slider_slip=True,
    ),
    "HalfCheetah": Robot(
        load=partial(load_mjcf, "half_cheetah.xml"),
        body="torso",
        feet=("ffoot", "fshin", "fthigh", "bfoot", "bshin", "bthigh"),
        alive=_on_its_feet,
        power=0.9,
        effort={
            "bthigh": 120.0,
            "bshin": 90.0,
            "bfoot": 60.0,
            "fthigh": 140.0,
            "fshin": 60.0,
            "ffoot": 30.0,
        },
        slider_slip=True,
        view=View(distance=2.8, height=0.5),
    ),
    "AtlasForwardWalk": Robot(
        load=load_atlas,
        body="pelvis",
        feet=("r_foot", "l_foot"),
        alive=_head_up,
        power=0.3,
        substeps=8,
        compound=True,
        start=(0.0, 0.0, 1.0),
        reference_height=1.5,
        view=View(distance=3.4, height=0.95, limbs=None, feet=None),
    ),
    "Walker2d": Robot(
        load=partial(load_mjcf, "walker2d.xml"),
        body="torso",
        feet=("foot", "foot_left"),
        alive=_upright,
        power=0.4,
        effort={"foot_joint": 30.0, "foot_left_joint": 30.0},
        slider_slip=True,
    ),
}
