"""A policy as one file of C99, without allocation and with no more than <math.h>."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adac.core.activations import GELU, Activation
from adac.core.plain import PlainPolicy
from adac.runs.export.facts import Facts, harmless, write

PER_LINE = 8


def write_c(policy: PlainPolicy, facts: Facts, path: Path) -> None:
    """A header's function is static, so that several files may include it."""
    text = "\n".join(_lines(policy, facts, header=path.suffix == ".h"))
    write(path, f"{text}\n".encode())


def _lines(policy: PlainPolicy, facts: Facts, *, header: bool) -> Iterator[str]:
    about = [harmless(line) for line in facts.lines(policy)]
    yield from ("/*", *(f" * {line}" for line in about), " */")
    yield from ("#ifndef ADAC_POLICY", "#define ADAC_POLICY", "", "#include <math.h>", "")
    yield f"#define ADAC_OBS_DIM {policy.obs_dim}"
    yield f"#define ADAC_ACTION_DIM {policy.action_dim}"
    yield ""
    if policy.normalises:
        yield from _array("mean", policy.mean)
        yield from _array("std", policy.std)
    for number, layer in enumerate(policy.layers):
        yield from _array(f"weight{number}", layer.weight)
        yield from _array(f"bias{number}", layer.bias)
    for name in ("low", "half", "high"):
        yield from _array(name, getattr(policy, name))
    yield from ("", "static float adac_hidden(float x)", "{", f"    {_HIDDEN[policy.activation]}")
    yield from ("}", *_LAYER)
    yield from _function(policy, "static void" if header else "void")
    yield from ("", "#endif")


_HIDDEN: dict[Activation, str] = {
    "relu": "return x > 0.0f ? x : 0.0f;",
    "tanh": "return tanhf(x);",
    "elu": "return x > 0.0f ? x : expm1f(x);",
    "silu": "return x * (1.0f + tanhf(x / 2.0f)) / 2.0f;",
    "gelu": f"return x * (1.0f + tanhf(x * ({GELU[0]}f + {GELU[1]}f * x * x) / 2.0f)) / 2.0f;",
}
_LAYER = """
static void adac_layer(const float *in, int inputs, float *out, int outputs, const float *weight,
                       const float *bias, int hidden)
{
    for (int j = 0; j < outputs; j++) out[j] = bias[j];
    for (int i = 0; i < inputs; i++)
        for (int j = 0; j < outputs; j++) out[j] += in[i] * weight[i * outputs + j];
    if (hidden)
        for (int j = 0; j < outputs; j++) out[j] = adac_hidden(out[j]);
}
""".splitlines()


def _function(policy: PlainPolicy, kind: str) -> Iterator[str]:
    yield from ("", f"{kind} adac_policy(const float *obs, float *action)", "{")
    for number, layer in enumerate(policy.layers):
        yield f"    float x{number + 1}[{len(layer.bias)}];"
    if policy.normalises:
        clip = _number(policy.clip)
        yield "    float x0[ADAC_OBS_DIM];"
        yield "    for (int i = 0; i < ADAC_OBS_DIM; i++) {"
        yield "        float z = (obs[i] - adac_mean[i]) / adac_std[i];"
        yield f"        x0[i] = z < -{clip} ? -{clip} : z > {clip} ? {clip} : z;"
        yield "    }"
    for number, layer in enumerate(policy.layers):
        source = f"x{number}" if number or policy.normalises else "obs"
        inputs, outputs = layer.weight.shape
        hidden = int(number + 1 < len(policy.layers))
        yield f"    adac_layer({source}, {inputs}, x{number + 1}, {outputs}, adac_weight{number},"
        yield f"               adac_bias{number}, {hidden});"
    yield "    for (int i = 0; i < ADAC_ACTION_DIM; i++) {"
    yield f"        float a = tanhf(x{len(policy.layers)}[i]);"
    yield "        a = adac_low[i] + (a + 1.0f) * adac_half[i];"
    yield "        a = a < adac_low[i] ? adac_low[i] : a;"
    yield "        action[i] = a > adac_high[i] ? adac_high[i] : a;"
    yield from ("    }", "}")


def _array(name: str, values: NDArray[np.float32]) -> Iterator[str]:
    numbers = [_number(value) for value in values.ravel().tolist()]
    yield f"static const float adac_{name}[{len(numbers)}] = {{"
    for start in range(0, len(numbers), PER_LINE):
        yield f"    {', '.join(numbers[start : start + PER_LINE])},"
    yield "};"


def _number(value: float) -> str:
    """Nine digits bring a single-precision number back to the bit."""
    text = f"{value:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"
