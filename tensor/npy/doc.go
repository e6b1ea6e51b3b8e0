// Package npy reads numpy's .npy files and .npz archives, and writes .npy files.
//
//	offset  type     meaning
//	0       6 bytes  magic 93 'NUMPY'
//	6       2 bytes  version: 1.0, 2.0 or 3.0
//	8       u16|u32  N, the size of the header, little-endian; 2 bytes in version 1.0, else 4
//	10|12   N bytes  {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } and spaces;
//	                 Latin-1, in version 3.0 UTF-8
//	…       bytes    the elements, to the end of the file
//
// Arrays in Fortran order or with big-endian elements are not copied, nor are members of an archive
// that are not compressed. Compressed members are inflated into memory, each to the size that its
// header declares, and all together to at most 1 GiB or 16 times the size of the archive, whichever
// is more. An archive names its tensors without ".npy"; the tensor of a .npy has no name.
//
// numpy does not know the small floats of ml_dtypes, which jax, mlx and others use, and writes only
// part of their type:
//
//	descr   read as
//	<V2     bfloat16, the only type of 16 bits
//	<f1     float8_e5m2, the only one that calls itself a float
//	<V1     any other type of 8 bits or less; which one is unknown, see [OpenAs]
//
// Structured types, complex numbers, dates, text and Python objects are refused by name. Nothing is
// ever unpickled.
package npy
