"""The public sets: where each comes from, what is known of it, and the cases it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sumgp_studies.public import compositions, real, simulators
from sumgp_studies.public.case import Case


@dataclass(frozen=True)
class PublicSet:
    """``load`` takes the folder of all data; ``folders`` are those below it that it reads.

    ``published``: numbers of others, quoted; they are never mixed with measured ones.
    """

    name: str
    title: str
    source: str
    licence: str
    load: Callable[[Path], Iterator[Case]]
    folders: tuple[str, ...]
    published: str = ""

    def is_there(self, folder: Path) -> bool:
        """True if its files are below the folder."""
        return all((folder / name).is_dir() for name in self.folders)


def _real(name: str, title: str, source: str, licence: str) -> PublicSet:
    return PublicSet(name, title, source, licence, lambda folder: real.SETS[name](folder / "real"), (f"real/{name}",))


SETS = (
    _real("electricity_mix", "Shares of electricity sources, by country and year", "Our World in Data", "CC BY 4.0"),
    _real("epidemic", "World totals of active, recovered, dead", "Johns Hopkins CSSE", "CC BY 4.0"),
    _real("foraminifera", "Four fossil species over depth", "Aitchison 1986", "GPL"),
    _real("gb_power", "Power generation of Great Britain, one week", "Elexon / National Grid, GridWatch", "not stated"),
    _real("mars", "Position and velocity of Mars with noise", "JPL ephemeris DE421", "public domain"),
    _real("meadow_energy", "Energy budget of a meadow, half-hours", "FLUXNET AT-Neu in bigleaf", "GPL >= 2"),
    _real("mocap_limbs", "Motion capture of limbs with noise", "CMU graphics lab", "free for all uses"),
    _real("national_accounts", "Shares of national accounts, by country and year", "Penn World Table 10.01", "CC BY 4.0"),
    _real("soil_texture", "Soil texture over a region", "GEMAS in robCompositions", "GPL >= 2"),
    _real("tourism", "Visitor nights by purpose and state", "Tourism Research Australia", "Apache-2.0"),
    PublicSet(
        "distillation",
        "Extractive distillation column",
        "Iftakher, Golder, Roy, Hasan 2025 (KKT-HardNet)",
        "MIT",
        simulators.distillation,
        ("distillation",),
        "KKT-HardNet with 1,600 noise-free rows: validation MSE near 0 (below 1e-4, read from a figure); not comparable "
        "with 60 rows.",
    ),
    PublicSet(
        "pooling",
        "Pooling problem with random feasible flows",
        "Iftakher, Golder, Roy, Hasan 2025 (KKT-HardNet)",
        "MIT",
        simulators.pooling,
        ("pooling",),
        "KKT-HardNet with 1,600 rows: validation MSE 52.0 to 55.9 (verified); not comparable with 80 rows.",
    ),
    PublicSet(
        "lotka_volterra",
        "Lotka-Volterra with its invariant",
        "Golder, Roy, Hasan 2025 (DAE-HardNet)",
        "MIT",
        simulators.lotka_volterra,
        ("dae",),
    ),
    PublicSet(
        "jura",
        "Heavy metals of the Swiss Jura",
        "Goovaerts 1997 in compositions",
        "GPL >= 2",
        compositions.jura,
        ("compositions",),
    ),
    PublicSet("gemas", "Texture of European farm soil", "GEMAS", "GPL >= 2", compositions.gemas, ("compositions",)),
)


def sets_named(names: list[str]) -> tuple[PublicSet, ...]:
    """The named sets, all of them where there are no names; KeyError with the first name that is none."""
    known = {entry.name: entry for entry in SETS}
    return tuple(known[name] for name in names) if names else SETS
