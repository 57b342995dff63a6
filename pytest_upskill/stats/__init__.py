"""Statistics of one cell: lift, its interval, the verdict and the gate's test.

How labels correct the lift of a judge is in `calibration`, and how often a skill is chosen in
`triggers`, by one ``QueryCounts`` per query.

Every function is pure and takes counts of *valid* runs, one ``CaseCounts`` per case. All inferences
are about a repetition of the same cases, not about new ones. Cases without a valid run in one of
the arms are left out. An estimate that the data do not determine is
``None``; a test without data has ``p = 1``.
"""

from pytest_upskill.stats.counts import CaseCounts as CaseCounts
from pytest_upskill.stats.counts import Estimate as Estimate
from pytest_upskill.stats.counts import Interval as Interval
from pytest_upskill.stats.counts import lift as lift
from pytest_upskill.stats.exact_test import holm as holm
from pytest_upskill.stats.exact_test import lift_test as lift_test
from pytest_upskill.stats.exact_test import regression_test as regression_test
from pytest_upskill.stats.exact_test import significant as significant
from pytest_upskill.stats.intervals import lift_interval as lift_interval
from pytest_upskill.stats.intervals import pass_at_k as pass_at_k
from pytest_upskill.stats.intervals import pass_hat_k as pass_hat_k
from pytest_upskill.stats.verdicts import MIN_RUNS as MIN_RUNS
from pytest_upskill.stats.verdicts import Verdict as Verdict
from pytest_upskill.stats.verdicts import chance_of_effect as chance_of_effect
from pytest_upskill.stats.verdicts import early_alpha as early_alpha
from pytest_upskill.stats.verdicts import early_verdict as early_verdict
from pytest_upskill.stats.verdicts import fewest_runs as fewest_runs
from pytest_upskill.stats.verdicts import look_alpha as look_alpha
from pytest_upskill.stats.verdicts import runs_needed as runs_needed
from pytest_upskill.stats.verdicts import verdict as verdict
