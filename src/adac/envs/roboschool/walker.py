"""Roboschool's forward walk, for any robot: run along x for as long as the alive rule holds."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from adac.envs.roboschool import bullet
from adac.envs.roboschool.bullet import STEP_SECONDS, Contacts, Joints, Reading, Triple, World
from adac.envs.roboschool.camera import Camera, Pixels
from adac.envs.roboschool.robots import ROBOTS, Robot

Observation = NDArray[np.float32]
Action = NDArray[np.float32]

TARGET = (1000.0, 0.0)  # metres; one kilometre straight ahead
BOUND = 5.0  # of every observation
DEFAULT_EFFORT = 100.0
DEFAULT_TOP_SPEED = 10.0  # rad/s
AT_LIMIT = 0.99
ELECTRICITY_COST = 2.0
STALL_COST = 0.1
JOINT_LIMIT_COST = 0.2
FOOT_COLLISION_COST = 1.0
NO_CONTACTS = Contacts(frozenset(), frozenset())


class Body:
    """A robot with the numbers of its links and joints looked up."""

    def __init__(self, robot: Robot, joints: Joints, link_numbers: dict[str, int]) -> None:
        self.robot = robot
        self.link_numbers = link_numbers
        self.joint_rows = {name: row for row, name in enumerate(joints.names)}
        self.feet = [link_numbers[foot] for foot in robot.feet]
        top_speed = np.where(joints.top_speed > 0, joints.top_speed, DEFAULT_TOP_SPEED)
        middle = (joints.lower + joints.upper) / 2
        # [J, 2]: a position becomes -1 to 1 between the limits, a speed a share of the top speed.
        self.offset = np.stack([middle, np.zeros_like(middle)], axis=1)
        self.scale = np.stack([(joints.upper - joints.lower) / 2, top_speed], axis=1)
        stated = np.where(joints.effort > 0, joints.effort, DEFAULT_EFFORT)
        effort = [robot.effort.get(n, e) for n, e in zip(joints.names, stated, strict=True)]
        self.torque = robot.power * np.array(effort)


class State:
    """A reading in the terms of the task; the contacts are those of the step before."""

    def __init__(self, body: Body, reading: Reading, contacts: Contacts) -> None:
        self._body, self._reading, self._contacts = body, reading, contacts
        self.height = reading.body[2]
        self.roll, self.pitch, self.yaw = bullet.roll_pitch_yaw(reading.rotation)
        self.joints: bullet.Vector = (reading.joints - body.offset) / body.scale
        self.speeds: bullet.Vector = self.joints[:, 1]
        xs, ys, _ = zip(*reading.links, strict=True)
        self.to_target = (TARGET[0] - sum(xs) / len(xs), TARGET[1] - sum(ys) / len(ys))
        self.distance = math.hypot(*self.to_target)

    @property
    def joints_at_limit(self) -> int:
        return int(np.count_nonzero(np.abs(self.joints[:, 0]) > AT_LIMIT))

    def height_of(self, link: str) -> float:
        return self._reading.links[self._body.link_numbers[link]][2]

    def at_limit(self, joint: str) -> bool:
        return bool(abs(self.joints[self._body.joint_rows[joint], 0]) > AT_LIMIT)

    def on_floor(self, foot: str) -> bool:
        return self._body.link_numbers[foot] in self._contacts.floor

    def observe(self, reference_height: float) -> Observation:
        """[8] body, [2J] joints (position and speed in turn), [F] feet on the floor."""
        angle = math.atan2(self.to_target[1], self.to_target[0]) - self.yaw
        vx, vy, vz = self._velocity()
        sine, cosine = math.sin(self.yaw), math.cos(self.yaw)
        joints, feet = self.joints.size, self._body.feet
        observation = np.empty(8 + joints + len(feet), np.float32)
        observation[:8] = (
            self.height - reference_height,
            math.sin(angle),
            math.cos(angle),
            0.3 * (cosine * vx + sine * vy),
            0.3 * (cosine * vy - sine * vx),
            0.3 * vz,
            self.roll,
            self.pitch,
        )
        observation[8 : 8 + joints] = self.joints.ravel()
        observation[8 + joints :] = [foot in self._contacts.floor for foot in feet]
        return observation.clip(-BOUND, BOUND, out=observation)

    def _velocity(self) -> Triple:
        vx, vy, vz = self._reading.velocity
        if not self._body.robot.slider_slip:
            return vx, vy, vz
        slip = self._reading.joints[0, 1]
        x, y, z = bullet.forward(self._reading.rotation)
        return vx + slip * x, vy + slip * y, vz + slip * z


class Walker(gymnasium.Env[Observation, Action]):
    """One robot of `ROBOTS` on a plane."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 60}  # noqa: RUF012

    def __init__(self, robot: str | Robot, render_mode: str | None = None) -> None:
        chosen = ROBOTS[robot] if isinstance(robot, str) else robot
        self.render_mode = render_mode
        visuals = render_mode is not None
        self.world = World(
            chosen.load,
            chosen.body,
            chosen.substeps,
            compound=chosen.compound,
            visuals=visuals,
        )
        self.body = Body(chosen, self.world.joints, self.world.link_numbers)
        self._camera = Camera(self.world, chosen.view, self.body.feet) if visuals else None
        size = len(self.world.joints.names)
        self.action_space = spaces.Box(-1.0, 1.0, (size,), np.float32)
        self.observation_space = spaces.Box(
            -BOUND, BOUND, (8 + 2 * size + len(chosen.feet),), np.float32
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        robot = self.body.robot
        positions = self.np_random.uniform(-0.1, 0.1, len(self.world.joints.names))
        self.world.restart(positions, robot.start)
        self._contacts = NO_CONTACTS
        state = State(self.body, self.world.read(), self._contacts)
        self._distance = state.distance
        fixed = robot.reference_height
        self._reference_height = state.height if fixed is None else fixed
        return state.observe(self._reference_height), {}

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        wanted = np.asarray(action, np.float64)
        self.world.step(self.body.torque * np.minimum(np.maximum(wanted, -1.0), 1.0))
        state = State(self.body, self.world.read(), self._contacts)
        alive = self.body.robot.alive(state)
        self._contacts = self.world.contacts()
        terms = {"alive": alive, **self._terms(wanted, state)}
        self._distance = state.distance
        observation = state.observe(self._reference_height)
        return observation, sum(terms.values()), alive < 0, False, terms

    def _terms(self, action: bullet.Vector, state: State) -> dict[str, float]:
        work = float(np.abs(action * state.speeds).sum()) / len(action)
        stall = float(action @ action) / len(action)
        bumps = sum(foot in self._contacts.other for foot in self.body.feet)
        return {
            "progress": (self._distance - state.distance) / STEP_SECONDS,
            "electricity": -ELECTRICITY_COST * work - STALL_COST * stall,
            "joints_at_limit": -JOINT_LIMIT_COST * state.joints_at_limit,
            "feet_collision": -FOOT_COLLISION_COST * bumps,
        }

    def render(self) -> Pixels | None:
        return None if self._camera is None else self._camera.shoot()

    def close(self) -> None:
        self.world.close()
