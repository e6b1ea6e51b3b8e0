// Package raw reads files without a header, such as those that Modular MAX writes in the print
// style BINARY: the elements of one tensor, little-endian and in row-major order. A [Spec] says
// their type and shape.
package raw
