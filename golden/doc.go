// Package golden keeps the tensors of a reference as files: one folder with a manifest and one
// .safetensors file for each forward pass.
//
//	manifest.json                          names, types, places, hashes, statistics, provenance
//	<variant>/<case>.<step>.safetensors    the tensors of one pass in their own type; equal ones
//	                                       share one range of bytes
//	programs/<case>.json                   what the reference ran (package program), where it was
//	programs/<case>.safetensors            recorded, and its constants
//
// [Import] makes goldens from a dump of the reference, which [OpenDump] reads; it is atomic. [Open]
// opens the folder as a [Store], which maps a file when one of its tensors is read. Goldens are
// never made from the candidate unless someone blesses it with a reason.
package golden
