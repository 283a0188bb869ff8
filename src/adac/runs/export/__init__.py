"""A policy in the forms that others read: an ONNX graph, NumPy's arrays, C, and a small file."""
