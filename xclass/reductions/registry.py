"""List the reductions in the order of `--help`.

To add one, write its module, add its record to `REDUCTIONS` and add its oracle (docs/adding_a_reduction.md).
"""

from .ect import reduction as ect
from .log_multi import reduction as log_multi
from .mach import reduction as mach
from .means import reduction as means
from .multiclass import with_rows as multiclass
from .multilabel import reduction as multilabel
from .multilabel_oaa import reduction as multilabel_oaa
from .oaa import reduction as oaa
from .plt import reduction as plt
from .random_tree import reduction as random_tree
from .recall_tree import reduction as recall_tree
from .scalar import reduction as scalar
from .softmax_tree import reduction as softmax_tree
from .sparse_experts import reduction as sparse_experts

REDUCTIONS = (
    scalar.REDUCTION,
    multilabel.REDUCTION,
    oaa.REDUCTION,
    multilabel_oaa.REDUCTION,
    recall_tree.REDUCTION,
    log_multi.REDUCTION,
    ect.REDUCTION,
    random_tree.REDUCTION,
    multiclass.REDUCTION,
    softmax_tree.REDUCTION,
    mach.REDUCTION,
    means.REDUCTION,
    sparse_experts.REDUCTION,
    plt.REDUCTION,
)
