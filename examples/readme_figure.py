"""Draw the figure of the README, and its form for phones: python examples/readme_figure.py docs/images/oscillator.svg"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import sumgp
from sumgp.report.drawing import LIGHT, NARROW, WIDTH, figure
from sumgp.report.figures import OUTPUT_HEIGHT, output_panels
from sumgp.report.fit_study import study

data = pd.read_csv(Path(__file__).with_name("oscillator.csv"))
law = "k/2*z**2 + m/2*v**2 = E"
gp = sumgp.ConstrainedGP(law, outputs=["z", "v"], inputs=["t"], constants={"k": 1.0, "m": 1.0, "E": 0.8})
gp.fit(data[["t"]], data[["z", "v"]])
found = study(gp, np.linspace(0, 10, 200)[:, None], (), lambda stage: None)
path = Path(sys.argv[1])
for place, width in ((path, WIDTH), (path.with_stem(path.stem + "-narrow"), NARROW)):
    place.write_bytes(figure(output_panels(found, LIGHT), "t", LIGHT, OUTPUT_HEIGHT, 1, width))
