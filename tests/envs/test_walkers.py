"""Roboschool's walkers: every number against PyBullet's state, read here link by link."""

import math
from typing import Any

import numpy as np
import pybullet
import pytest

from adac import envs
from adac.envs.roboschool.robots import ROBOTS
from adac.envs.roboschool.walker import Walker

PLANAR = {"Hopper": "thigh_joint", "HalfCheetah": "bthigh", "Walker2d": "thigh_joint"}
WALKERS = [*PLANAR, "Ant"]
FEET = {
    "Hopper": ["foot"],
    "Walker2d": ["foot", "foot_left"],
    "HalfCheetah": ["ffoot", "fshin", "fthigh", "bfoot", "bshin", "bthigh"],
    "Ant": ["front_left_foot", "front_right_foot", "left_back_foot", "right_back_foot"],
}
TORQUE = {  # at action 1, in the joints' order
    "Hopper": [75, 75, 75],
    "Walker2d": [40, 40, 12, 40, 40, 12],
    "HalfCheetah": [108, 81, 54, 126, 54, 27],
    "Ant": [250] * 8,
}


class Truth:
    """PyBullet's own account of a walker."""

    def __init__(self, env: Walker) -> None:
        self.robot, self.client = env.world.robot, env.world.client
        self.floor = env.world.floor
        count = pybullet.getNumJoints(self.robot, physicsClientId=self.client)
        self.infos = [
            pybullet.getJointInfo(self.robot, j, physicsClientId=self.client) for j in range(count)
        ]
        self.links = {info[12].decode(): info[0] for info in self.infos}
        self.motors = [
            info for info in self.infos if info[2] == 0 and not info[1].startswith(b"ignore")
        ]

    def link(self, number: int) -> Any:
        return pybullet.getLinkState(
            self.robot, number, computeLinkVelocity=1, physicsClientId=self.client
        )

    def joint(self, number: int) -> tuple[float, float]:
        return pybullet.getJointState(self.robot, number, physicsClientId=self.client)[:2]

    def body(self) -> tuple[np.ndarray, Any, np.ndarray]:
        """Position, quaternion and velocity of the torso."""
        if "torso" in self.links:
            state = self.link(self.links["torso"])
            return np.array(state[0]), state[1], np.array(state[6])
        position, quaternion = pybullet.getBasePositionAndOrientation(
            self.robot, physicsClientId=self.client
        )
        velocity, _ = pybullet.getBaseVelocity(self.robot, physicsClientId=self.client)
        return np.array(position), quaternion, np.array(velocity)

    def mean_xy(self) -> np.ndarray:
        return np.mean([self.link(info[0])[0][:2] for info in self.infos], axis=0)

    def distance(self) -> float:
        return float(np.linalg.norm(np.array([1000.0, 0.0]) - self.mean_xy()))

    def joints(self) -> np.ndarray:
        """[J, 2]: where between the limits (-1 to 1), and a tenth of the speed."""
        rows = []
        for info in self.motors:
            position, speed = self.joint(info[0])
            low, high = info[8], info[9]
            rows.append([2 * (position - low) / (high - low) - 1, speed / 10])
        return np.array(rows)

    def on_floor(self, link: str) -> bool:
        points = pybullet.getContactPoints(
            self.robot, self.floor, self.links[link], -1, physicsClientId=self.client
        )
        return len(points) > 0


def run(name: str, steps: int, seed: int = 1) -> Any:
    """Steps under random actions, each with the truth before and after it."""
    env = envs.make(f"adac/Roboschool{name}-v1").unwrapped
    observation, _ = env.reset(seed=seed)
    truth = Truth(env)
    start_height = truth.body()[0][2]
    rng = np.random.default_rng(seed)
    contacts = [False] * len(FEET[name])
    for _ in range(steps):
        before, feet_before = truth.distance(), contacts
        action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        observation, reward, terminated, _, terms = env.step(action)
        contacts = [truth.on_floor(foot) for foot in FEET[name]]
        yield (
            truth,
            action,
            observation,
            reward,
            terminated,
            terms,
            (
                before,
                start_height,
                feet_before,
            ),
        )
    env.close()


@pytest.mark.parametrize("name", WALKERS)
def test_observation(name: str) -> None:
    touched = False
    for truth, _, observation, *_, (_, start_height, feet_before) in run(name, 60):
        position, quaternion, velocity = truth.body()
        rotation = np.array(pybullet.getMatrixFromQuaternion(quaternion)).reshape(3, 3)
        roll = math.atan2(rotation[2, 1], rotation[2, 2])
        pitch = math.asin(-rotation[2, 0])
        yaw = math.atan2(rotation[1, 0], rotation[0, 0])
        if name in PLANAR:  # the first hinge's speed, along the body's x axis
            hinge = next(i for i in truth.motors if i[1].decode() == PLANAR[name])
            velocity = velocity + truth.joint(hinge[0])[1] * rotation[:, 0]
        heading = np.array(
            [[math.cos(yaw), math.sin(yaw), 0], [-math.sin(yaw), math.cos(yaw), 0], [0, 0, 1]]
        )
        x, y = truth.mean_xy()
        angle = math.atan2(-y, 1000 - x) - yaw
        expected = [
            position[2] - start_height,
            math.sin(angle),
            math.cos(angle),
            *(0.3 * heading @ velocity),
            roll,
            pitch,
            *truth.joints().ravel(),
            *feet_before,
        ]
        np.testing.assert_allclose(observation, np.clip(expected, -5, 5), atol=2e-6)
        touched = touched or any(feet_before)
    assert touched


@pytest.mark.parametrize("name", WALKERS)
def test_reward_terms(name: str) -> None:
    for truth, action, _, reward, terminated, terms, (before, _, _) in run(name, 60):
        joints = truth.joints()
        at_limit = np.count_nonzero(np.abs(joints[:, 0]) > 0.99)
        work = np.mean(np.abs(action * joints[:, 1]))
        expected = {
            "alive": -1.0 if terminated else 1.0,
            "progress": (before - truth.distance()) / 0.0165,
            "electricity": -2 * work - 0.1 * np.mean(action.astype(float) ** 2),
            "joints_at_limit": -0.2 * at_limit,
            "feet_collision": 0.0,
        }
        assert terms == pytest.approx(expected, abs=1e-9)
        assert reward == pytest.approx(sum(expected.values()), abs=1e-9)


@pytest.mark.parametrize("name", WALKERS)
def test_progress_is_the_whole_movement_of_the_robot(name: str) -> None:
    """Moved one metre by hand, nothing of it is lost to a part that stands still."""
    env = envs.make(f"adac/Roboschool{name}-v1").unwrapped
    env.reset(seed=0)
    world, still = env.world, np.zeros(env.action_space.shape, np.float32)
    _, _, _, _, before = env.step(still)
    if name in PLANAR:  # the first slider moves along x
        position, speed = Truth(env).joint(0)
        pybullet.resetJointState(world.robot, 0, position + 1, speed, physicsClientId=world.client)
    else:
        (x, y, z), q = pybullet.getBasePositionAndOrientation(
            world.robot, physicsClientId=world.client
        )
        pybullet.resetBasePositionAndOrientation(
            world.robot, (x + 1, y, z), q, physicsClientId=world.client
        )
    _, _, _, _, after = env.step(still)
    assert after["progress"] - before["progress"] == pytest.approx(1 / 0.0165, rel=0.02)


@pytest.mark.parametrize("name", [*WALKERS, "AtlasForwardWalk"])
def test_the_scene_is_roboschool_s(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gravity, time step, solver, and motors that neither brake nor weaken what is asked."""
    asked: dict[str, list[Any]] = {}

    def note(function: str) -> None:
        real = getattr(pybullet, function)

        def noted(*args: Any, **options: Any) -> Any:
            asked.setdefault(function, []).append((args, options))
            return real(*args, **options)

        monkeypatch.setattr(pybullet, function, noted)

    note("setPhysicsEngineParameter")
    note("setJointMotorControlArray")
    env = Walker(name)
    ((_, engine),) = asked["setPhysicsEngineParameter"]
    names = ("fixedTimeStep", "numSubSteps", "numSolverIterations", "contactERP")
    substeps = 8 if name == "AtlasForwardWalk" else 4
    assert tuple(engine[n] for n in names) == (0.0165, substeps, 5, 0.9)
    assert engine["enableConeFriction"] == 0
    found = pybullet.getPhysicsEngineParameters(physicsClientId=env.world.client)
    assert found["gravityAccelerationZ"] == -9.8
    ((_, free, mode), options) = asked["setJointMotorControlArray"].pop()
    assert (mode, set(options["forces"])) == (pybullet.VELOCITY_CONTROL, {0.0})
    assert set(env.world.joints.numbers) <= set(free)
    env.reset(seed=0)
    env.step(np.ones(len(env.world.joints.names), np.float32))
    ((_, driven, mode), options) = asked["setJointMotorControlArray"].pop()
    assert (mode, list(driven)) == (pybullet.TORQUE_CONTROL, list(env.world.joints.numbers))
    np.testing.assert_allclose(options["forces"], TORQUE.get(name, env.body.torque))


@pytest.mark.parametrize("name", WALKERS)
def test_torque(name: str) -> None:
    """Power times effort; actions beyond 1 add nothing."""
    env = Walker(name)
    np.testing.assert_allclose(env.body.torque, TORQUE[name])
    size = len(TORQUE[name])

    def speeds(action: float) -> np.ndarray:
        env.reset(seed=0)
        env.step(np.full(size, action, np.float32))
        return np.array([row[1] for row in Truth(env).joints()])

    np.testing.assert_array_equal(speeds(1.0), speeds(3.0))
    assert not np.allclose(speeds(1.0), speeds(0.9))


def test_half_cheetah_ends_when_a_shin_or_thigh_is_down() -> None:
    env = envs.make("adac/RoboschoolHalfCheetah-v1").unwrapped
    for seed in range(20):
        env.reset(seed=seed)
        terminated, rng, steps = False, np.random.default_rng(seed), 0
        previous: list[bool] = []
        truth = Truth(env)
        while not terminated:
            down = [truth.on_floor(leg) for leg in ("fshin", "fthigh", "bshin", "bthigh")]
            previous = down if steps else [False] * 4
            _, _, terminated, _, terms = env.step(rng.uniform(-1, 1, 6).astype(np.float32))
            pitch = pybullet.getEulerFromQuaternion(truth.body()[1])[1]
            assert terminated == (any(previous) or abs(pitch) >= 1.0)
            steps += 1
            assert steps < 1000
        assert terms["alive"] == -1.0


@pytest.mark.parametrize(
    ("name", "height", "pitch", "alive"),
    [
        ("Hopper", 0.81, 0.0, 1.0),
        ("Hopper", 0.8, 0.0, -1.0),
        ("Hopper", 1.2, 0.99, 1.0),
        ("Hopper", 1.2, -1.0, -1.0),
        ("Walker2d", 0.8, 0.0, -1.0),
        ("Walker2d", 1.2, 1.01, -1.0),
        ("Ant", 0.261, 3.0, 1.0),
        ("Ant", 0.26, 0.0, -1.0),
    ],
)
def test_alive_rules(name: str, height: float, pitch: float, alive: float) -> None:
    class Standing:
        def __init__(self) -> None:
            self.height, self.pitch = height, pitch

        def on_floor(self, _: str) -> bool:
            return False

    assert ROBOTS[name].alive(Standing()) == alive  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [*WALKERS, "AtlasForwardWalk"])
def test_pictures_do_not_change_the_physics(name: str) -> None:
    plain, filmed = Walker(name), Walker(name, render_mode="rgb_array")
    rng = np.random.default_rng(0)
    plain.reset(seed=0)
    filmed.reset(seed=0)
    for step in range(12):
        action = rng.uniform(-1, 1, plain.action_space.shape).astype(np.float32)
        expected, *_ = plain.step(action)
        seen, *_ = filmed.step(action)
        np.testing.assert_array_equal(seen, expected)
        if step == 3:
            filmed.render()


@pytest.mark.parametrize("name", [*WALKERS, "AtlasForwardWalk"])
def test_nothing_leaks_from_an_earlier_episode(name: str) -> None:
    """After histories of many lengths, also past the end and with wild actions."""
    fresh, used = Walker(name), Walker(name)
    rng = np.random.default_rng(1)

    def trajectory(env: Walker) -> list[bytes]:
        actions = np.random.default_rng(2)
        first, _ = env.reset(seed=6)
        steps = [
            env.step(actions.uniform(-1, 1, env.action_space.shape))[0].tobytes() for _ in range(40)
        ]
        return [first.tobytes(), *steps]

    expected = trajectory(fresh)
    for length in (1, 2, 11, 35, 60, 90):
        used.reset(seed=length)
        for _ in range(length):
            used.step(rng.uniform(-4, 4, used.action_space.shape))
        assert trajectory(used) == expected


def test_closing_disconnects_once_and_for_all() -> None:
    env = Walker("Hopper")
    client = env.world.client
    assert pybullet.isConnected(client)
    env.close()
    env.close()
    assert not pybullet.isConnected(client)
