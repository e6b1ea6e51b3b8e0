"""A candidate in torch that takes images, with the fault that PARITY_TEST_FAULT names."""

import copy
import os

from goparity import torchrun, torchtasks

CAN = {**torchrun.CAN, "does": "a candidate with a fault"}
check, run, weights = torchrun.check, torchrun.run, torchrun.weights


def load(job, out, cases):
    right = torchtasks._load

    def wrong(job, dtype):
        model = right(job, dtype)
        make = {"none": lambda features, kept: features, "second": second, "stale": stale}[os.environ["PARITY_TEST_FAULT"]]
        inner, kept = model.model, {}
        features = inner.get_image_features
        inner.get_image_features = lambda *args, **kwargs: make(features(*args, **kwargs), kept)
        return model

    torchtasks._load = wrong
    return torchrun.load(job, out, cases)


def second(features, kept):
    """Every image has the features of the first."""
    features.pooler_output = [features.pooler_output[0]] * len(features.pooler_output)
    return features


def stale(features, kept):
    """The features of as many images as once before are those."""
    return copy.copy(kept.setdefault(len(features.pooler_output), features))
