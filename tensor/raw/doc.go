// Package raw reads files without a header, such as Modular MAX writes in the print style BINARY:
// the elements of one tensor, little-endian and in row-major order. What they are a [Spec] says.
package raw
