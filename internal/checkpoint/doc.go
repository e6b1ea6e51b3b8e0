// Package checkpoint opens the weights of a model by Hugging Face's names, a .gguf file's too, and reads its
// config.json. Quantised weights are joined with their scales, zero points and the like, by their names and
// by what config.json says, and become the weight that they stand for, whose elements are computed when they
// are read.
//
//	format              parts of a module                                          becomes
//	MLX affine          weight (U32), scales, biases                               weight
//	MLX mxfp4, mxfp8    weight (U32), scales (U8)                                  weight
//	MLX nvfp4           weight (U32), scales (U8), global_scale if there is one    weight
//	GPTQ                qweight, qzeros, scales, g_idx                             weight
//	AWQ                 qweight, qzeros, scales                                    weight
//	FP8, int8           weight (F8 or I8), weight_scale or weight_scale_inv        weight
//	compressed-tensors  weight_packed (I32), weight_scale, weight_shape, weight_zero_point, weight_g_idx
//	NVFP4               weight_packed (U8), weight_scale, weight_global_scale      weight
//	NVFP4 of ModelOpt   weight (U8), weight_scale, weight_scale_2                  weight
//	MXFP4               weight_packed or weight (U8), weight_scale (U8)            weight
//	MXFP4 of gpt-oss    NAME_blocks, NAME_scales                                   NAME
//
// What is not quantised stays as it is. Scales of activations (input_scale) stay, too.
package checkpoint
