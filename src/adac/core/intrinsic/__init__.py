"""Intrinsic rewards: a bonus for what the agent does not know yet."""

from adac.core.intrinsic.counts import Counts
from adac.core.intrinsic.ensemble import InformationGain
from adac.core.intrinsic.ex2 import Ex2
from adac.core.intrinsic.icm import Icm
from adac.core.intrinsic.interface import Intrinsic
from adac.core.intrinsic.rnd import Rnd
from adac.core.intrinsic.several import Sum
from adac.core.intrinsic.vime import Vime

__all__ = ["Counts", "Ex2", "Icm", "InformationGain", "Intrinsic", "Rnd", "Sum", "Vime"]
