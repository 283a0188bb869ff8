"""Atlas: found in its distribution, weighed, actuated, observed and ended as Roboschool's."""

import importlib.metadata
import math
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pybullet
import pytest

from adac import envs
from adac.envs.roboschool import atlas
from adac.envs.roboschool.walker import Walker
from adac.errors import UserError

ID = "adac/RoboschoolAtlasForwardWalk-v1"


@pytest.fixture(scope="module")
def env() -> Any:
    walker = Walker("AtlasForwardWalk")
    yield walker
    walker.close()


@pytest.fixture(scope="module")
def urdf() -> ElementTree.Element:
    return ElementTree.parse(atlas.urdf_path()).getroot()


def dynamics(env: Walker, link: str) -> Any:
    number = env.world.link_numbers.get(link, -1)
    return pybullet.getDynamicsInfo(env.world.robot, number, physicsClientId=env.world.client)


def put(env: Walker, **positions: float) -> None:
    """Joints to positions, all others to 0 or the nearest limit, at rest."""
    for info in motors(env):
        position = positions.get(info[1].decode(), min(max(0.0, info[8]), info[9]))
        pybullet.resetJointState(
            env.world.robot, info[0], position, 0.0, physicsClientId=env.world.client
        )


def motors(env: Walker) -> list[Any]:
    return [
        pybullet.getJointInfo(env.world.robot, joint, physicsClientId=env.world.client)
        for joint in range(30)
    ]


def test_without_the_distribution_one_line_names_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(UserError) as caught:
        envs.make(ID)
    assert "pip install --no-deps roboschool==1.0.34" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broken_distribution_is_told_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty:
        files = None

    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Empty())
    with pytest.raises(UserError, match="pip install --no-deps roboschool"):
        envs.make(ID)


def test_masses_and_friction(env: Walker, urdf: ElementTree.Element) -> None:
    links = urdf.findall("link")
    assert len(links) == 31
    for link in links:
        mass = link.find("inertial/mass")
        assert mass is not None
        found = dynamics(env, link.attrib["name"])
        assert found[0] == pytest.approx(float(mass.attrib["value"]), rel=1e-12)
        assert found[1] == pytest.approx(0.8)


def test_inertia_of_a_foot_by_hand(env: Walker) -> None:
    """A sole of 0.227 x 0.133887 x 0.05 at x = 0.023, and a toe of 0.1 x 0.08 x 0.02 at 0.1225."""
    x = (0.1225 + 0.05) - (0.023 - 0.1135) + 0.002
    y = 0.133887 + 0.002
    z = (-0.049119 + 0.025) - min(-0.049119 - 0.025, -0.0641 - 0.01) + 0.002
    expected = 2.41 / 12 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])
    np.testing.assert_allclose(dynamics(env, "l_foot")[2], expected, rtol=1e-9)


def test_inertia_of_a_cylinder_by_hand(env: Walker, urdf: ElementTree.Element) -> None:
    """The middle torso is one upright cylinder: 0.041 more each way, and 0.001 again."""
    (link,) = (link for link in urdf.findall("link") if link.attrib["name"] == "mtorso")
    (shape,) = link.iter("cylinder")
    side = 2 * (float(shape.attrib["radius"]) + 0.042)
    height = float(shape.attrib["length"]) + 2 * 0.042
    expected = 0.799 / 12 * np.array([side**2 + height**2] * 2 + [2 * side**2])
    np.testing.assert_allclose(dynamics(env, "mtorso")[2], expected, rtol=1e-9)


def test_boxes_agree_with_bullets_own_at_its_own_margin(env: Walker) -> None:
    """All 31 at once: PyBullet takes the same boxes, but gives cylinders 0.002."""
    client = pybullet.connect(pybullet.DIRECT)
    plain = pybullet.loadURDF(
        str(atlas.urdf_path()), flags=atlas.SELF_COLLISION, physicsClientId=client
    )
    inertias = atlas.box_inertias(atlas.urdf_path(), cylinder_margin=0.002)
    assert len(inertias) == 31
    for name, inertia in inertias.items():
        number = env.world.link_numbers.get(name, -1)
        found = pybullet.getDynamicsInfo(plain, number, physicsClientId=client)[2]
        np.testing.assert_allclose(found, inertia, rtol=1e-9)
    pybullet.disconnect(client)


def test_torque_scale(env: Walker, urdf: ElementTree.Element) -> None:
    efforts = {
        joint.attrib["name"]: float(limit.attrib["effort"])
        for joint in urdf.findall("joint")
        if (limit := joint.find("limit")) is not None
    }
    expected = [0.3 * efforts[name] for name in env.world.joints.names]
    np.testing.assert_allclose(env.body.torque, expected, rtol=1e-6)
    assert max(expected) == pytest.approx(0.3 * 890)


def test_start(env: Walker) -> None:
    observation, _ = env.reset(seed=0)
    client = env.world.client
    position, quaternion = pybullet.getBasePositionAndOrientation(
        env.world.robot, physicsClientId=client
    )
    np.testing.assert_allclose(position, (0, 0, 1.0), atol=1e-12)
    np.testing.assert_allclose(quaternion, (0, 0, 0, 1), atol=1e-12)
    assert observation[0] == pytest.approx(-0.5)
    angles = [
        pybullet.getJointState(env.world.robot, joint, physicsClientId=client)[0]
        for joint in range(30)
    ]
    assert np.abs(angles).max() <= 0.1
    assert np.ptp(angles) > 0.1


def test_the_seventy_observations_in_order(env: Walker) -> None:
    env.reset(seed=2)
    rng, client, robot = np.random.default_rng(2), env.world.client, env.world.robot
    feet = [False, False]
    for _ in range(25):
        observation, *_ = env.step(rng.uniform(-1, 1, 30).astype(np.float32))
        position, quaternion = pybullet.getBasePositionAndOrientation(robot, physicsClientId=client)
        velocity, _ = pybullet.getBaseVelocity(robot, physicsClientId=client)
        rotation = np.array(pybullet.getMatrixFromQuaternion(quaternion)).reshape(3, 3)
        yaw = math.atan2(rotation[1, 0], rotation[0, 0])
        places = [
            pybullet.getLinkState(robot, link, physicsClientId=client)[0] for link in range(30)
        ]
        x, y, _ = np.mean(places, axis=0)
        angle = math.atan2(-y, 1000 - x) - yaw
        cosine, sine = math.cos(yaw), math.sin(yaw)
        joints = []
        for info in motors(env):
            angle_now, speed, *_ = pybullet.getJointState(robot, info[0], physicsClientId=client)
            joints += [2 * (angle_now - info[8]) / (info[9] - info[8]) - 1, speed / info[11]]
        expected = [
            position[2] - 1.5,
            math.sin(angle),
            math.cos(angle),
            0.3 * (cosine * velocity[0] + sine * velocity[1]),
            0.3 * (cosine * velocity[1] - sine * velocity[0]),
            0.3 * velocity[2],
            math.atan2(rotation[2, 1], rotation[2, 2]),
            math.asin(-rotation[2, 0]),
            *joints,
            *feet,
        ]
        assert observation.shape == (70,)
        np.testing.assert_allclose(observation, np.clip(expected, -5, 5), atol=2e-5)
        feet = [
            len(
                pybullet.getContactPoints(
                    robot, env.world.floor, env.world.link_numbers[foot], -1, physicsClientId=client
                )
            )
            > 0
            for foot in ("r_foot", "l_foot")
        ]
    assert any(feet)


@pytest.mark.parametrize(
    ("left", "right", "alive"),
    [(1.0, 1.0, 4.0), (0.0, 1.0, 3.0), (2.35, 1.0, 3.0), (0.0, 0.0, 2.0)],
)
def test_stiff_knees_cost_one_each(env: Walker, left: float, right: float, alive: float) -> None:
    env.reset(seed=0)
    put(env, l_leg_kny=left, r_leg_kny=right)
    *_, terminated, _, terms = env.step(np.zeros(30, np.float32))
    assert (terms["alive"], terminated) == (alive, False)


@pytest.mark.parametrize(("above", "alive"), [(0.01, 4.0), (-0.01, -1.0)])
def test_it_ends_when_the_head_sinks_below_1_3(env: Walker, above: float, alive: float) -> None:
    env.reset(seed=0)
    put(env, l_leg_kny=0.2, r_leg_kny=0.2, l_leg_hpy=-1.5, r_leg_hpy=-1.5)  # legs off the floor
    client, robot = env.world.client, env.world.robot
    head = pybullet.getLinkState(robot, env.world.link_numbers["head"], physicsClientId=client)
    # The fall of one step (g t^2 / 2, 1.3 mm) is less than the 10 mm.
    pelvis = (0.0, 0.0, 1.0 + 1.3 + above - head[0][2])
    pybullet.resetBasePositionAndOrientation(robot, pelvis, (0, 0, 0, 1), physicsClientId=client)
    *_, terminated, _, terms = env.step(np.zeros(30, np.float32))
    assert (terms["alive"], terminated) == (alive, alive < 0)


def test_a_foot_that_touches_the_other_costs_one_each(env: Walker) -> None:
    """Hips turned inwards until the feet share a place."""
    env.reset(seed=0)
    put(env, l_leg_hpx=-0.2, r_leg_hpx=0.2, l_leg_kny=0.5, r_leg_kny=0.5)
    *_, terms = env.step(np.zeros(30, np.float32))
    points = pybullet.getContactPoints(
        env.world.robot, env.world.robot, physicsClientId=env.world.client
    )
    touching = {link for point in points for link in point[3:5]}
    feet = [env.world.link_numbers[foot] for foot in ("r_foot", "l_foot")]
    assert terms["feet_collision"] == -sum(foot in touching for foot in feet)
    assert terms["feet_collision"] == -2.0


def test_reward_by_hand(env: Walker) -> None:
    env.reset(seed=4)
    rng, client, robot = np.random.default_rng(4), env.world.client, env.world.robot

    def distance() -> float:
        places = [
            pybullet.getLinkState(robot, link, physicsClientId=client)[0] for link in range(30)
        ]
        x, y, _ = np.mean(places, axis=0)
        return math.hypot(1000 - x, y)

    for _ in range(10):
        before = distance()
        action = rng.uniform(-1, 1, 30)
        observation, reward, _, _, terms = env.step(action)
        relative = observation[8:68:2]
        speeds = [
            pybullet.getJointState(robot, info[0], physicsClientId=client)[1] / info[11]
            for info in motors(env)
        ]
        assert terms["progress"] == pytest.approx((before - distance()) / 0.0165, abs=1e-9)
        cost = 2 * np.mean(np.abs(action * speeds)) + 0.1 * np.mean(action**2)
        assert terms["electricity"] == pytest.approx(-cost, abs=1e-9)
        limits = np.count_nonzero(np.abs(relative) > 0.99)
        assert terms["joints_at_limit"] == pytest.approx(-0.2 * limits)
        assert reward == pytest.approx(sum(terms.values()))


@pytest.mark.parametrize("start", [2, 5])
def test_no_contact_cache_survives_a_reset(start: int) -> None:
    """Starts whose links touch at once, after pasts that a restored state alone carries over."""
    used, fresh = Walker("AtlasForwardWalk"), Walker("AtlasForwardWalk")

    def first_step(walker: Walker) -> bytes:
        walker.reset(seed=start)
        action = np.random.default_rng(start).uniform(-1, 1, 30)
        return walker.step(action)[0].tobytes()

    expected = first_step(fresh)
    for past in (6, 21, 23, 27, 29, 34):
        used.reset(seed=past)
        for action in np.random.default_rng(past).uniform(-1, 1, (15, 30)):
            used.step(action)
        assert first_step(used) == expected
