"""Loads a factored model into a torch.nn.Module whose layers then apply the factors."""
import torch
from torch import nn
from torch.nn.utils import parametrize

from . import _factors

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


class Factored(nn.Sequential):
    """A layer whose weight is factored: two plain layers, and in a grid of blocks a shuffle between
    them. `weight` multiplies the factors out, for code that reads it instead of calling the layer.
    Has the attributes of the layer that it replaces, such as in_features or stride."""

    def __init__(self, factors, turned, *layers):
        super().__init__(*layers)
        self._shape, self._grid, self._turned = factors.shape, len(factors.inner), turned

    @property
    def weight(self):
        first, *shuffle, last = self
        if isinstance(last, _Rows):
            return first.weight @ last.weight
        inner, outer = (
            layer.weight if isinstance(layer, GroupedLinear)
            else layer.weight.flatten(1).unflatten(0, (self._grid, -1)) for layer in (first, last))
        if shuffle:
            outer = outer.unflatten(2, (-1, self._grid)).transpose(2, 3).flatten(2)
        product = _factors.product(inner, outer).reshape(self._shape)
        return product.T if self._turned else product

    @property
    def bias(self):
        return self[-1].bias


class GroupedLinear(nn.Module):
    """Linear maps of k equal slices of the features, each by its own weight. With `shuffles`, the
    k * k slices of the result change from the order (i, o) to (o, i)."""

    def __init__(self, weight, bias=None, shuffles=False):
        super().__init__()
        self.weight = weight  # k x outputs/k x inputs/k
        self.bias = bias
        self.shuffles = shuffles

    def forward(self, x):
        k = len(self.weight)
        y = torch.einsum("...ki,koi->...ko", x.unflatten(-1, (k, -1)), self.weight)
        if self.shuffles:
            y = y.unflatten(-1, (k, -1)).transpose(-3, -2).flatten(-2)
        y = y.flatten(-2)
        return y if self.bias is None else y + self.bias


class _Rows(nn.Module):
    """The second factor of an embedding, r x features."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight
        self.bias = None

    def forward(self, x):
        return x @ self.weight


class _Product(nn.Module):
    """Multiplies the factors of a parameter whose module is no layer of a known kind."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape

    def forward(self, inner, outer):
        return _factors.product(*(
            each if each.dim() == 3 else each[None] for each in (inner, outer))).reshape(self.shape)

    def right_inverse(self, weight):
        return weight.new_empty(0), weight.new_empty(0)  # load_model() sets the factors


def load_model(module, path):
    tensors, _ = _factors.read(path)
    places = _places(module)
    plan = _matched(_state(module), tensors, path)
    shared = {}  # parameters, by the first name of their tensor, their role and their shape
    is_factored = lambda name: isinstance(plan[name][1], _factors.Factors)
    for name in sorted(plan, key=is_factored):  # a pair takes over its layer's bias
        tensor, value = plan[name]
        if not is_factored(name):
            _assign(places[name], tensor, value)
            continue
        like = torch.empty(0, dtype=tensor.dtype, device="cpu" if tensor.is_meta else tensor.device)
        value = value._replace(inner=value.inner.to(like), outer=value.outer.to(like))
        for owner, attribute, parents in places[name]:
            replacement = _replacement(owner, attribute, value, _Sharing(shared, name, tensor))
            if replacement is None:
                continue
            for parent, child in parents:
                setattr(parent, child, replacement)
            owner.register_parameter(attribute, None)  # whoever still calls it shall notice
            if owner is module:
                module = replacement
    return module


def _places(module):
    """For each tensor of the state dict, by its first name: the modules that have it, under which
    attribute, and the parents of these modules."""
    parents = {module: []}
    for parent in module.modules():
        for child_name, child in parent._modules.items():
            if child is not None:
                parents.setdefault(child, []).append((parent, child_name))
    names, places = {}, {}
    for name, tensor, owner, attribute in _state(module):
        first = names.setdefault(id(tensor), name)
        place = (owner, attribute, parents[owner])
        if place not in places.setdefault(first, []):  # a module may have several names
            places[first].append(place)
    return places


def _matched(state, tensors, path):
    """{first name: (tensor of the module, value of the file)}. Raises ValueError for the first
    tensor that does not fit."""
    problems = []
    plan, known = {}, set()
    names = {}
    for name, tensor, _, _ in state:
        names.setdefault(id(tensor), []).append((name, tensor))
    for group in names.values():
        tensor = group[0][1]
        first = group[0][0]
        found = [name for name, _ in group if name in tensors]
        known.update(found)
        if not found:
            if first.endswith("num_batches_tracked"):
                if tensor.is_meta:  # as of a new module
                    plan[first] = (tensor, torch.zeros(tensor.shape, dtype=tensor.dtype))
            else:
                problems.append(f"{_place(first)}: the module has {_factors.sizes(tensor.shape)}, "
                                "and the file nothing of this name")
            continue
        value = tensors[found[0]]
        if any(not _equal(value, tensors[name]) for name in found[1:]):
            problems.append(f"{_place(found[1])}: the module has one tensor with "
                            f"'{found[0]}', the file two different ones")
            continue
        if tuple(value.shape) != tuple(tensor.shape):
            problems.append(f"{_place(first)}: the module has {_factors.sizes(tensor.shape)}, the "
                            f"file {_factors.sizes(value.shape)}")
            continue
        plan[first] = (tensor, value)
    for name in tensors.keys() - known:
        if not name.endswith("num_batches_tracked"):
            problems.append(f"{_place(name)}: the module has nothing of this name, the file "
                            f"{_factors.sizes(tensors[name].shape)}")
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise ValueError(f"{path} does not fit the module: {problems[0]}{more}")
    return plan


def _equal(one, other):
    if isinstance(one, torch.Tensor) != isinstance(other, torch.Tensor):
        return False
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    return torch.equal(one.inner, other.inner) and torch.equal(one.outer, other.outer)


def _place(name):
    layer, _, tensor = name.rpartition(".")
    return f"layer '{layer}', {tensor}" if layer else f"'{name}'"


def _state(module):
    """Names and tensors of the state dict, tied ones under all their names, with the modules that
    have them and under which attribute."""
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for attribute, tensor in [*owner._parameters.items(), *owner._buffers.items()]:
            if tensor is not None and attribute not in owner._non_persistent_buffers_set:
                yield f"{prefix}.{attribute}".lstrip("."), tensor, owner, attribute


def _assign(owners, tensor, value):
    if not tensor.is_meta:
        with torch.no_grad():
            tensor.copy_(value)
        return
    value = value.to(tensor.dtype)
    if isinstance(tensor, nn.Parameter):
        value = nn.Parameter(value, tensor.requires_grad)
    for owner, attribute, _ in owners:
        setattr(owner, attribute, value)


class _Sharing:
    """Makes the parameters of one tensor's factors, so that tied weights stay tied."""

    def __init__(self, made, name, tensor):
        self.made, self.name, self.requires_grad = made, name, tensor.requires_grad

    def __call__(self, factor, role):
        key = (self.name, role, factor.shape)
        if key not in self.made:
            self.made[key] = nn.Parameter(factor.contiguous(), self.requires_grad)
        return self.made[key]


def _is(owner, kind):
    """Whether it is this layer of PyTorch, without hooks and without what a subclass adds."""
    if not isinstance(owner, kind) or "forward" in vars(owner) or owner._modules or owner._buffers:
        return False
    if owner._parameters.keys() - {"weight", "bias"} or any(
            value for name, value in vars(owner).items() if name.endswith("_hooks")):
        return False
    own = [cls for cls in type(owner).__mro__ if issubclass(cls, kind) and cls is not kind]
    return all(name.startswith("__") for cls in own for name in vars(cls))


def _is_conv1d(owner):
    """The layer of transformers whose weight is inputs x outputs."""
    return type(owner).__name__ == "Conv1D" and (
        type(owner).__module__ == "transformers.pytorch_utils") and _is(owner, type(owner))


def _skipped(kind, *args, **options):
    """A layer without values."""
    return kind(*args, device="meta", **options)


def _replacement(owner, attribute, factors, parameter):
    """The module that takes the owner's place; None if the owner stays and forms the product."""
    k = len(factors.inner)
    if attribute == "weight":
        if _is(owner, nn.Linear):
            return _pair_of_linears(owner, factors, False, parameter)
        if _is_conv1d(owner):
            return _pair_of_linears(owner, factors.turned, True, parameter)
        for kind in _CONVOLUTIONS:
            if _is(owner, kind) and owner.groups == 1:
                return _pair_of_convolutions(owner, kind, factors, parameter)
        if _is(owner, nn.Embedding) and k == 1 and owner.max_norm is None:
            first = _skipped(nn.Embedding, owner.num_embeddings, factors.inner.size(1),
                             owner.padding_idx, scale_grad_by_freq=owner.scale_grad_by_freq,
                             sparse=owner.sparse)
            first.weight = parameter(factors.outer[0], "outer")
            return _dressed(Factored(factors, False, first,
                                     _Rows(parameter(factors.inner[0], "inner"))), owner)
    parametrize.register_parametrization(owner, attribute, _Product(factors.shape), unsafe=True)
    chain = owner.parametrizations[attribute]
    # In the form that a pair of linear layers has, with which a tied weight shares them.
    chain.original0, chain.original1 = (
        parameter(factor if k > 1 else factor[0], role)
        for factor, role in ((factors.inner, "inner"), (factors.outer, "outer")))
    return None


def _pair_of_linears(owner, factors, turned, parameter):
    k, rank, _ = factors.inner.shape
    if k > 1:
        layers = [GroupedLinear(parameter(factors.inner, "inner"), shuffles=True),
                  GroupedLinear(parameter(factors.outer, "outer"), owner.bias)]
    else:
        outputs, inputs = factors.shape
        layers = [_skipped(nn.Linear, inputs, rank, bias=False),
                  _skipped(nn.Linear, rank, outputs, bias=False)]
        for layer, factor, form in zip(layers, (factors.inner, factors.outer), ("inner", "outer")):
            layer.weight = parameter(factor[0], form)
        layers[1].bias = owner.bias
    return _dressed(Factored(factors, turned, *layers), owner)


def _pair_of_convolutions(owner, kind, factors, parameter):
    k, rank, _ = factors.inner.shape
    outputs, inputs, *kernel = factors.shape
    first = _skipped(kind, inputs, k * rank, tuple(kernel), owner.stride, owner.padding,
                     owner.dilation, k, bias=False, padding_mode=owner.padding_mode)
    first.weight = parameter(factors.inner.reshape(k * rank, inputs // k, *kernel), "inner")
    outer = factors.outer
    if k > 1:  # nn.ChannelShuffle puts the place within a slice before the slice
        outer = outer.unflatten(2, (k, -1)).transpose(2, 3).flatten(2)
    last = _skipped(kind, k * rank, outputs, 1, groups=k, bias=False)
    last.weight = parameter(outer.reshape(outputs, rank, *(1 for _ in kernel)), "outer")
    last.bias = owner.bias
    shuffle = [nn.ChannelShuffle(k)] if k > 1 else []
    return _dressed(Factored(factors, False, first, *shuffle, last), owner)


def _dressed(pair, owner):
    """With the mode and the plain attributes of the layer that it replaces."""
    for name, value in vars(owner).items():
        if not name.startswith("_") and name != "training" and not hasattr(pair, name):
            setattr(pair, name, value)
    pair.train(owner.training)
    return pair
