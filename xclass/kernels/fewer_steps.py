"""Leave out what numba does in vain, or several times when it compiles a kernel with the kernels that it calls.

Code      numba optimises each function and turns it into machine code, although a function that only kernels call is
          linked into these as intermediate code and optimised there again. Here this is done for the outermost kernel
          alone, with all that is linked into it.
Types     numba looks up the result of each operation, such as the sum of two integers, wherever it occurs: it tries all
          functions of that name in turn. Here the result is remembered by the types of the operands. So are the sizes
          of types in memory, for each of which numba lets LLVM parse a module.
Wrappers  numba adds a function by which C could call a kernel. It is left out.
Analyses  after each of its passes, numba computes where each variable is alive. Only generators need this, and the
          pass that deletes variables, which computes it anew.
Passes    passes are left out that look for what no kernel of this package contains, see `UNNEEDED`.
Events    numba measures the time in which its locks are held, at each call of LLVM. It is not measured here.
Arrays    numba imports `numpy.ma` to find out whether an array is masked, which takes a twentieth of a start. Here it
          asks only if `numpy.ma` has been imported, because otherwise there are no such arrays.

All replace private members of numba, and all but the last act only while a kernel of this package is compiled, see
`jit`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# passes for closures, comprehensions, contexts, functions that are inlined as source, and literals that numba unrolls;
# and those that describe what was compiled
UNNEEDED = {
    "InlineClosureLikes", "MakeFunctionToJitFunction", "WithLifting", "InlineInlinables", "FindLiterallyCalls",
    "LiteralUnroll", "LiteralPropagationSubPipelinePass", "AnnotateTypes", "DumpParforDiagnostics",
}  # fmt: skip
_PACKAGE = __name__.partition(".")[0]
_outermost: str | None = None  # the function that becomes machine code, "" for none; None while nothing is compiled


@contextlib.contextmanager
def within(name: str) -> Iterator[None]:
    """Turn only the function of a qualified name into machine code, none if it is empty; needs numba's lock."""
    global _outermost
    before, _outermost = _outermost, name
    try:
        yield
    finally:
        _outermost = before


def know_arrays() -> None:
    """Let numba determine the types of arrays without `numpy.ma`, if no array can be masked."""
    with contextlib.suppress(ImportError):
        from numba.core import types
        from numba.extending import typeof_impl
        from numba.np.numpy_support import from_dtype, map_layout

        with_masks = typeof_impl.dispatch(np.ndarray)

        def typeof_array(array: Any, context: Any) -> Any:
            if "numpy.ma" in sys.modules or array.dtype.kind not in "biuf":
                return with_masks(array, context)
            readonly = not array.flags.writeable
            return types.Array(from_dtype(array.dtype), array.ndim, map_layout(array), readonly=readonly)

        typeof_impl.register(np.ndarray)(typeof_array)


@functools.cache
def library_classes() -> tuple[type, type]:
    """Return the classes of the code of the outermost kernel and of a function that it calls, which need numba's."""
    from numba.core import codegen, environment

    class FewStepsLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]  # numba has no types
        """Optimise functions as numba does, which creates the passes anew for each function, even one without code."""

        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout
            passes, builder = self._codegen._function_pass_manager()
            for function in module.functions:
                if not function.is_declaration:
                    passes.run(function, builder)

    class Outermost(FewStepsLibrary):
        """Hold machine code; numba would set the environments of the functions in it where these are compiled."""

        def _finalize_specific(self) -> None:
            super()._finalize_specific()
            for variable in self._final_module.global_variables:
                if used := environment.lookup_environment(variable.name):
                    self._codegen.set_env(variable.name, used)

    class Intermediate(FewStepsLibrary):
        """Hold intermediate code alone, to be linked into kernels."""

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0  # which says that there is no function that Python could call

        def serialize_using_object_code(self) -> Any:
            return self.name, "object", (b"", self._get_module_for_linking().as_bitcode())

    return Outermost, Intermediate


def install(codegen: Any) -> None:
    """Let numba leave out these steps while a kernel is compiled inside `within`."""
    from numba.core import base, compiler, event, lowering, postproc, types
    from numba.core.targetconfig import ConfigStack

    set_environment = codegen.set_env
    outermost, intermediate = library_classes()
    results: dict[Any, tuple[Any, Any]] = {}  # by function, types of the arguments, and flags of the caller
    sizes: dict[tuple[Any, str], int] = {}  # in bytes, by target and type

    def create(_: Any, name: str, **options: Any) -> Any:
        return (outermost if name == _outermost else intermediate)(codegen, name, **options)

    def set_env(name: str, used: Any) -> None:
        if codegen._engine.get_global_value_address(name):  # intermediate code has no addresses
            set_environment(name, used)

    def remembered(look_up: Any, function: Any, context: Any, args: Any, names: Any) -> Any:
        if names:
            return look_up(function, context, args, names)
        flags = ConfigStack.top_or_none()
        key = function, args, None if flags is None else flags.summary()
        if key not in results:
            found: Any = look_up(function, context, args, names)
            results[key] = found, function._impl_keys[found.args]
        signature, function._impl_keys[signature.args] = results[key]
        return signature

    def size_of(measure: Any, context: Any, kind: Any) -> int:
        key = context, str(kind)
        if key not in sizes:
            sizes[key] = measure(context, kind)
        return sizes[key]

    def finish_pass(run: Any, processor: Any, emit_dels: bool = False, **options: Any) -> None:
        function = processor.func_ir
        if emit_dels or function.is_generator:
            run(processor, emit_dels, **options)
            return
        function.blocks = postproc.transforms.canonicalize_cfg(function.blocks)
        function.variable_lifetime = postproc.VariableLifetime(function.blocks)  # computed when it is read
        function.generator_info = None

    def pipelines(define: Any, compiling: Any) -> Any:
        defined = define(compiling)
        if compiling.state.func_id.modname.partition(".")[0] == _PACKAGE:
            for pipeline in defined:
                pipeline.passes = [step for step in pipeline.passes if step[0].__name__ not in UNNEEDED]
        return defined

    def unless_lock(tell: Any, kind: str, *args: Any, **options: Any) -> None:
        if not kind.endswith("_lock"):
            tell(kind, *args, **options)

    codegen.set_env = set_env
    _replace(codegen, "create_library", create)
    _replace(types.functions.BaseFunction, "get_call_type", remembered)
    _replace(base.BaseContext, "get_abi_sizeof", size_of)
    _replace(lowering.BaseLower, "create_cfunc_wrapper", lambda *_: None)
    _replace(postproc.PostProcessor, "run", finish_pass)
    _replace(compiler.Compiler, "define_pipelines", pipelines)
    _replace(event, "start_event", unless_lock)
    _replace(event, "end_event", unless_lock)


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    """Let `function`, which gets the original first, take the place of a member of numba inside `within`."""
    original = getattr(owner, name)

    def chosen(*args: Any, **options: Any) -> Any:
        return original(*args, **options) if _outermost is None else function(original, *args, **options)

    setattr(owner, name, chosen)
