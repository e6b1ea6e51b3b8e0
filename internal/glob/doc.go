// Package glob matches the names of layers with the patterns of fixture.yaml, flags and package
// parity.
//
//	?       one character, not a dot
//	*       any run of characters inside one segment, even none: layers.* is layers.3, not layers.3.mlp
//	**      any number of whole segments, even none: encoder.**.dense
//	[a-z]   one character of a set; [!a-z] and [^a-z] one that is not in it; never a dot
//	{a,b}   either; may hold dots and other wildcards, and may be nested
//	\x      x itself
//
// A pattern, with or without wildcards, matches the end of a name at a dot:
// "encoder.layer.3.attention" and "layer.*.attention" match "model.encoder.layer.3.attention". Case
// matters. A repeated call "norm(2)" is a name of its own: "norm" does not match it, "norm*" does.
package glob
