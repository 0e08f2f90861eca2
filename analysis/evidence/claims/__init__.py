"""The statements of the two texts, each with its test.

Importing this package registers them all.
"""

from analysis.evidence.claims import cost as cost
from analysis.evidence.claims import decision as decision
from analysis.evidence.claims import diffusion as diffusion
from analysis.evidence.claims import ownership as ownership
from analysis.evidence.claims import queueing as queueing
from analysis.evidence.claims import rivals as rivals
from analysis.evidence.claims import roofline as roofline
from analysis.evidence.claims import serving as serving
from analysis.evidence.claims import speculation as speculation
from analysis.evidence.claims import waiting as waiting
