"""oracle.py, which says how often MAX loads a graph. In the case "sharp" one constant is another by one bit."""

import importlib.util
import os

import numpy as np

_spec = importlib.util.spec_from_file_location("plain_oracle", os.path.join(os.path.dirname(__file__), "oracle.py"))
plain = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(plain)


def candidate(spec):
    from max.engine import InferenceSession

    if not hasattr(InferenceSession, "counted"):
        InferenceSession.counted, load = True, InferenceSession.init

        def counting(session, *args, **kwargs):
            print("loads a graph", flush=True)
            return load(session, *args, **kwargs)

        InferenceSession.init = counting
    module, weights, types, inputs = plain.candidate(spec)
    if spec.case == "weights":
        weights = dict(weights)
        weights["norm.weight"] = np.nextafter(weights["norm.weight"], np.float32(9))
    if spec.case == "sharp":
        module.norm.eps = float(np.nextafter(np.float32(plain.EPS), np.float32(1)))
    return module, weights, types, inputs
