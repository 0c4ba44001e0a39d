"""The public names, each with the module that defines it; ``__init__.py`` reads them from here."""

from ictd.algorithms import register_algorithm as register_algorithm
from ictd.attention import GramAttention as GramAttention
from ictd.attention import load_module as load_module
from ictd.attention import pretrain_attention as pretrain_attention
from ictd.attention import save_module as save_module
from ictd.baselines import batch_td as batch_td
from ictd.baselines import certainty_equivalence as certainty_equivalence
from ictd.baselines import constant_estimate as constant_estimate
from ictd.baselines import lstd as lstd
from ictd.baselines import theta_preconditioned_td as theta_preconditioned_td
from ictd.comparison import evaluate as evaluate
from ictd.context import Context as Context
from ictd.mrp import ENVIRONMENTS as ENVIRONMENTS
from ictd.mrp import TaskDistribution as TaskDistribution
from ictd.mrp import Tasks as Tasks
from ictd.mrp import msve as msve
from ictd.mrp import register_environment as register_environment
from ictd.mrp import sample_tasks as sample_tasks
from ictd.mrp import stationary_distribution as stationary_distribution
from ictd.mrp import value_function as value_function
from ictd.pretraining import pretrain as pretrain
from ictd.pretraining import pretrain_history as pretrain_history
from ictd.prompt import enumerated_columns as enumerated_columns
from ictd.prompt import joint_prompt as joint_prompt
from ictd.prompt import prompts_of as prompts_of
from ictd.prompt import sampled_columns as sampled_columns
from ictd.rng import generator as generator
from ictd.sampling import BatchStatistics as BatchStatistics
from ictd.sampling import sample_paths as sample_paths
from ictd.sampling import sample_steps as sample_steps
from ictd.sampling import unroll as unroll
from ictd.torch_twin import LinearTransformer as LinearTransformer
from ictd.traces import lstd_lambda as lstd_lambda
from ictd.traces import td_lambda as td_lambda
from ictd.training_data import EnumeratedPrompts as EnumeratedPrompts
from ictd.training_data import SampledPrompts as SampledPrompts
from ictd.transformer import Model as Model
from ictd.transformer import Weights as Weights
from ictd.transformer import initial_weights as initial_weights
from ictd.transformer import load_model as load_model
from ictd.transformer import theta_td as theta_td
from ictd.weight_measures import cosine_to_theta_td as cosine_to_theta_td

__version__: str
