package quant

// Vector switches the kernels in assembly on or off until undo is called. It does nothing where
// there are none.
var Vector = func(bool) (undo func()) { return func() {} }
