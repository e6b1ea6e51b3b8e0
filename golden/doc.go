// Package golden keeps reference tensors as fixtures: one folder with a manifest and one .safetensors file per forward pass.
//
//	golden/manifest.json                          what is there: names, types, places, hashes, statistics, provenance
//	golden/<variant>/<case>.<step>.safetensors    all tensors of one pass in their own dtype; equal ones share one byte range
//
// A [Store] opens such a folder on any afero file system: real files are mapped, others are read. [Import] makes goldens of a dump of
// the reference, atomically. Goldens are never written from the candidate unless someone blesses it with a reason.
package golden
