package op

// Conv is a convolution of [channels, height, width] with a weight [OutChannels,
// InChannels/Groups, KernelHeight, KernelWidth], with zeros around; in one dimension the height is 1.
type Conv struct {
	InChannels, Height, Width        int // of the input
	OutChannels, OutHeight, OutWidth int
	KernelHeight, KernelWidth        int
	Groups                           int
	Stride, Pad                      [2]int    // of height and width
	W, B                             []float64 // B is nil for none
}

// Work is the number of multiplications for n rows of the output.
func (c *Conv) Work(n int) float64 {
	return float64(n*c.OutWidth) * float64(c.InChannels/c.Groups*c.KernelHeight*c.KernelWidth)
}

// Row returns row y of an output channel, of an input [InChannels, Height,
// Width].
func (c *Conv) Row(x []float64, channel, y int) []float64 {
	out := make([]float64, c.OutWidth)
	in := c.InChannels / c.Groups
	first := channel / (c.OutChannels / c.Groups) * in
	size := c.KernelHeight * c.KernelWidth
	for k := range in {
		plane := x[(first+k)*c.Height*c.Width:][:c.Height*c.Width]
		w := c.W[(channel*in+k)*size:][:size]
		for i := range c.KernelHeight {
			row := y*c.Stride[0] - c.Pad[0] + i
			if row < 0 || row >= c.Height {
				continue
			}
			for j := range c.KernelWidth {
				f := w[i*c.KernelWidth+j]
				for o := range out {
					if at := o*c.Stride[1] - c.Pad[1] + j; at >= 0 && at < c.Width {
						out[o] += f * plane[row*c.Width+at]
					}
				}
			}
		}
	}
	if c.B != nil {
		for o := range out {
			out[o] += c.B[channel]
		}
	}
	return out
}
