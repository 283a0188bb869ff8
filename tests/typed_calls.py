"""Read by mypy alone (make lint): a call that it lets pass leaves its `ignore` unused, an error."""

import adac


def wrong(learner: adac.Learner) -> None:
    learner.learn(100, eval_evry=10)  # type: ignore[call-arg]
    learner.learn(100, callback=3)  # type: ignore[arg-type]
    learner.learn(100, out="run", save_best="yes")  # type: ignore[arg-type]
    learner.learn(total_timesteps=100)  # type: ignore[call-arg]
    adac.Learner("Pendulum-v1", sede=3)  # type: ignore[call-arg]
    adac.Learner.load("run", with_reply=False)  # type: ignore[call-arg]


def right(learner: adac.Learner) -> adac.Learner:
    return learner.learn(
        100,
        out="run",
        eval_every=10,
        save_best=True,
        callback=[adac.Callback(), lambda learner: learner.step < 10],
    )
