"""Exports a module, and refuses what the program would refuse to train."""
import io
import pathlib
import warnings

import torch


def save_model(module, example, path, overwrite, any_length):
    path = pathlib.Path(path)
    if path.exists() and not overwrite:
        raise ValueError(f"{path} exists; overwrite=True replaces it")
    if not isinstance(example, torch.Tensor) or example.dim() < 2 or len(example) < 2:
        raise ValueError("example: expected a tensor that holds a batch of at least two inputs")
    if example.dtype not in (torch.float32, torch.int64):
        raise ValueError(f"example: expected float32 numbers or int64 tokens, got {example.dtype}")
    _check_module(module)
    modes = [(child, child.training) for child in module.modules()]
    state = {name: value.clone() for name, value in _named_tensors(module)}
    try:
        if not module.training:
            module.train()
        _warn_of_evaluation_mode(module)
        exported_modes = [(child, child.training) for child in module.modules()]
        try:
            dynamic = dict.fromkeys([0, 1] if any_length else [0], torch.export.Dim.DYNAMIC)
            program = torch.export.export(module, (example.clone(),), dynamic_shapes=(dynamic,))
        except Exception as error:  # torch.export raises errors of many classes
            text = str(error).strip().split("\n")
            if "size()[0]" in str(error) and "specialized it to be a constant" in str(error):
                raise ValueError(
                    f"the module can be exported for batches of {len(example)} inputs only, but in "
                    "training, a batch may have any size: forward() takes the size of the batch as "
                    "a number. len(x), int(x.shape[0]), a loop over x and a number in place of "
                    "x.shape[0] are the usual reasons; write x.shape[0]") from error
            raise ValueError(
                f"torch.export cannot export this module: {text[0]}\n"
                "Branches on a tensor's values, and sizes taken from the example instead of from "
                "x.shape, are the usual reasons; "
                "https://docs.pytorch.org/docs/stable/export.html lists the others.") from error
        _check_batch(program)
        for part in program.graph_module.modules():
            if isinstance(part, torch.fx.GraphModule):
                for node in part.graph.nodes:
                    _check_operator(node)
        _check_same(module, program, example, state, exported_modes)
    finally:
        for child, mode in modes:
            child.training = mode
        _restore(module, state)
    _write(program, path.resolve())  # a link stays


def _write(program, path):
    """Writes the file as a whole or not at all; torch's own writer aborts on a full disk."""
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(buffer.getbuffer())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _named_tensors(module):
    return [*module.named_parameters(), *module.named_buffers()]


def _restore(module, state):
    """Undoes what forward passes have changed; an exported program shares the module's tensors."""
    with torch.no_grad():
        for name, value in _named_tensors(module):
            if name not in state or state[name].shape != value.shape:
                raise ValueError(f"a forward pass makes the buffer '{name}', or changes its size; "
                                 "make it in __init__")
            if not torch.equal(value, state[name]):
                value.copy_(state[name])


def _warn_of_evaluation_mode(module):
    kinds = (torch.nn.modules.batchnorm._NormBase, torch.nn.modules.dropout._DropoutNd)
    names = [name for name, child in module.named_modules()
             if isinstance(child, kinds) and not child.training]
    if names:
        warnings.warn(
            f"{len(names)} norms and dropout layers, such as '{names[0]}', are in evaluation mode and "
            "stay so in training; module.train() before the export puts all in training mode",
            stacklevel=4)


def _check_module(module):
    """Refuses what the program would, by the words of the module's author."""
    for name, value in _named_tensors(module):
        if value.is_complex():
            raise ValueError(
                f"{name} holds complex numbers, which abtrain does not train; store them as real "
                "ones, as torch.view_as_real() returns them, and call torch.view_as_complex() in "
                "forward()")
    for name, child in module.named_modules():
        place = f"layer '{name}': " if name else ""
        kinds = [type(hook).__name__ for hook in child._forward_pre_hooks.values()]
        if torch.nn.utils.parametrize.is_parametrized(child):
            kinds += [type(each).__name__.removeprefix("_")
                      for chain in child.parametrizations.values() for each in chain]
        for kind, what in (("WeightNorm", "weight"), ("SpectralNorm", "spectral")):
            if kind in kinds:
                raise ValueError(
                    f"{place}{what} normalization does not run in abtrain; take it off with "
                    "torch.nn.utils.parametrize.remove_parametrizations(layer, 'weight') or "
                    f"torch.nn.utils.remove_{what}_norm(layer)")
        if getattr(child, "max_norm", None) is not None:
            raise ValueError(f"{place}max_norm changes the weight in each forward pass, which does "
                             "not run in abtrain; leave max_norm out")
        if isinstance(child, torch.nn.modules.batchnorm._NormBase) and (
                child.track_running_stats and child.momentum is None):
            raise ValueError(f"{place}momentum=None, the average over all batches, cannot be "
                             "exported; set a number, such as 0.1")


def _check_batch(program):
    """Refuses a program for some sizes of batches only: it has one side of a branch on the size."""
    name = program.graph_signature.user_inputs[0]
    size = next(node for node in program.graph.nodes if node.name == name).meta["val"].shape[0]
    bounds = program.range_constraints.get(getattr(getattr(size, "node", None), "expr", size))
    conditions = [one for one in getattr(program, "_guards_code", None) or [] if "size()[0]" in one]
    if bounds is None or bounds.upper < 2**31:
        conditions.append(f"from {bounds.lower} to {bounds.upper}" if bounds else str(size))
    if conditions:
        raise ValueError(
            f"the exported module takes some sizes of batches only ({conditions[0]}), because the "
            "module branches on the size of the batch; in training, a batch may have any size")


# Functions of sizes that the program computes (lib/nn/exported/steps.cpp).
_OF_SIZES = {"add", "sub", "mul", "floordiv", "mod", "sym_max", "sym_min", "neg", "truediv", "pow",
             "sym_float", "floor", "ceil", "trunc", "sym_int", "getitem"}
_DRAWS_NUMBERS = (
    "it draws random numbers; only dropout, dropout in attention and stochastic depth by "
    "bernoulli_ may. If it has a dropout rate, set that to 0 and apply nn.Dropout; otherwise remove "
    "it")


def _operators():
    text = pathlib.Path(__file__).with_name("operators.txt").read_text(encoding="utf-8")
    return {name for line in text.splitlines() if not line.startswith("#") for name in line.split()}


def _is_assertion(target):
    name = getattr(target, "__name__", "")
    return name.startswith(("_assert", "sym_constrain", "_check_is_size"))


def _matters(node):
    """Whether more than the exporter's own checks depend on it."""
    return any(user.op == "output" or not _is_assertion(user.target) and _matters(user)
               for user in node.users)


def _arguments(node):
    """Those of a call of an operator by their names."""
    names = [argument.name for argument in node.target._schema.arguments]
    return dict(zip(names, node.args)) | dict(node.kwargs)


def _check_operator(node):
    """Refuses what graph.cpp and steps.cpp of lib/nn/exported refuse."""
    if node.op != "call_function":
        return
    target = node.target
    places = [line for line in (node.stack_trace or "").split("\n")
              if "File" in line and "/torch/nn/" not in line
              and 'File "<eval_with_key>' not in line]
    what = f"operator {target}, {places[-1].strip() if places else ''}: "
    if isinstance(target, torch._ops.HigherOrderOperator):
        name = target.name()
        if name in ("cond", "while_loop", "scan"):
            raise ValueError(
                what + "branches and loops that depend on tensors' values do not run in abtrain; "
                       "use torch.where in place of torch.cond, and a loop of a fixed length in "
                       "place of while_loop and scan")
        if name not in ("wrap_with_set_grad_enabled", "wrap_with_autocast"):
            raise ValueError(what + "it does not run in abtrain; leave it out")
    elif not isinstance(target, torch._ops.OpOverload):
        if target.__name__ not in _OF_SIZES and _matters(node):
            raise ValueError(what + "it does not run on sizes in abtrain; leave it out")
    elif target.namespace != "aten":
        raise ValueError(what + "only PyTorch's own (aten) operators run in abtrain; replace it in "
                                "the module")
    elif not _is_assertion(target):
        name = target._schema.name.removeprefix("aten::")
        names = {name, name[:-1]} if name.endswith("_") and name[-2:] != "__" else {name}
        is_seeded = torch.Tag.nondeterministic_seeded in target.tags
        fills = any(argument.is_out for argument in target._schema.arguments)
        if fills or target._overloadname == "data" or not names & _operators():
            raise ValueError(what + (_DRAWS_NUMBERS if is_seeded else
                                     "it is not among the operators that run in abtrain; replace "
                                     "it in the module with others"))
        given = _arguments(node)
        drops = (names & {"dropout", "feature_dropout", "scaled_dot_product_attention"} or
                 name == "bernoulli_" and isinstance(given.get("p", 0.5), float))
        if not drops and (given["dropout"] > 0 if "dropout" in given else is_seeded):
            raise ValueError(what + _DRAWS_NUMBERS)


def _only_counts(node):
    """Whether nobody reads it but what counts it in place, such as num_batches_tracked."""
    return all(isinstance(user.target, torch._ops.OpOverload) and user.args[:1] == (node,)
               and getattr(user.target._schema.arguments[0].alias_info, "is_write", False)
               and _only_counts(user) for user in node.users)


def _check_unchanged(module, program, state):
    """After a pass of the exported module: only statistics of norms may have changed."""
    inputs = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    statistics = {value for node in program.graph.nodes
                  if isinstance(node.target, torch._ops.OpOverload)
                  for name, value in _arguments(node).items() if name.startswith("running_")}
    kept = program.graph_signature.inputs_to_buffers
    for name, target in kept.items():
        node = inputs[name]
        if node not in statistics and not _only_counts(node) and (
                not torch.equal(module.get_buffer(target), state[target])):
            raise ValueError(
                f"a forward pass changes the buffer '{target}'; in abtrain only running statistics "
                "of norms may change. Leave it out")
    for name, value in module.named_parameters():
        if not torch.equal(value, state[name]):
            raise ValueError(f"a forward pass changes the parameter '{name}'; in abtrain only "
                             "training does. Leave it out")


def _check_same(module, program, example, state, modes):
    """Runs both on the example, in training, where the module's parts have these modes, and, with
    what abtrain changes then, in evaluation."""
    class Evaluation(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            if target is torch.ops.aten.bernoulli_.float:
                return args[0].fill_(args[1])
            if isinstance(target, torch._ops.OpOverload):
                names = [argument.name for argument in target._schema.arguments]
                kwargs = dict(kwargs) | dict(zip(names, args))
                args = ()
                off = {"training": False, "train": False, "dropout_p": 0.0}
                if kwargs.get("running_mean") is not None:
                    off["use_input_stats"] = False
                elif "running_mean" in kwargs:
                    off.pop("training")
                kwargs.update({k: v for k, v in off.items() if kwargs.get(k)})
                if "self" in kwargs:  # no operator takes it by name
                    args = tuple(kwargs.pop(name) for name in names[:names.index("self") + 1])
            return target(*args, **kwargs)

    def output(call, mode):
        _restore(module, state)
        for child, trains in modes:
            child.training = mode and trains
        with torch.random.fork_rng():
            torch.manual_seed(0)
            found = call(example.clone())
        tensors = [value for value in torch.utils._pytree.tree_leaves(found) if value is not None]
        if len(tensors) != 1 or not isinstance(tensors[0], torch.Tensor):
            raise ValueError(
                f"the module returns {len(tensors)} values; export a module whose forward() "
                "returns one tensor, such as the logits")
        return tensors[0]

    @torch.no_grad()
    def differ(one, other):
        if not bool(other.isfinite().all()):
            raise ValueError("the module returns nan or infinity, or has such gradients, for the "
                             "example")
        close = torch.allclose(one, other, rtol=1e-3, atol=1e-4 * float(other.abs().max()))
        return "" if close else f"they differ by up to {float((one - other).abs().max()):.3g}"

    trained = {name: value for name, value in module.named_parameters() if value.requires_grad}

    def gradients(result):  # of a weighted sum, before a parameter is restored
        weights = torch.linspace(-1, 1, result.numel(), device=result.device, dtype=result.dtype)
        found = torch.autograd.grad(
            result, list(trained.values()), weights.view(result.shape), allow_unused=True)
        return {name: torch.zeros_like(value) if one is None else one
                for (name, value), one in zip(trained.items(), found)}

    exported = program.module()
    found = output(exported, True)
    _check_unchanged(module, program, state)
    if not found.is_floating_point() or found.dim() < 1 or len(found) != len(example):
        raise ValueError(
            f"the module returns {found.dtype} of {tuple(found.shape)} for {len(example)} inputs; "
            "expected floating-point numbers, of which the first size is that of the batch")
    if not found.requires_grad:
        raise ValueError("what the module returns does not depend on any trained parameter: all "
                         "have requires_grad=False, or are detached")
    found_gradients = gradients(found)
    wanted = output(module, True)
    wanted_gradients = gradients(wanted)
    if difference := differ(found, wanted):
        again = differ(output(module, True), wanted)
        raise ValueError(
            "in training, the exported module does not compute what the module does: " + difference
            + (f". The module does not even repeat its own result ({again}): it keeps something "
               "from one call to the next, or draws random numbers of its own" if again else ""))
    for name, gradient in wanted_gradients.items():
        if difference := differ(found_gradients[name], gradient):
            raise ValueError(
                f"the gradient of {name} is not that of the module: {difference}. A "
                "torch.autograd.Function is exported by its forward() alone; write it with operators "
                "and detach(), as x + (f(x) - x).detach() has the values of f and the gradient of x")
    with torch.no_grad():
        difference = differ(output(Evaluation(exported).run, False), output(module, False))
    if difference:
        raise ValueError(
            f"in evaluation, the exported module does not compute what the module does: {difference}"
            ". A branch on self.training is the usual reason: the export has only the branch for "
            "training, in which dropout, norms and stochastic depth are the only parts that an "
            "evaluation changes.")
