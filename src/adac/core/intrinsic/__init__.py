"""Intrinsic rewards: a bonus for what the agent does not know yet."""

from adac.core.intrinsic.interface import Intrinsic
from adac.core.intrinsic.rnd import Rnd
from adac.core.intrinsic.vime import Vime

__all__ = ["Intrinsic", "Rnd", "Vime"]
