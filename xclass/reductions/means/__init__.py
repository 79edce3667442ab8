"""Learn classes from dense rows: means in a whitened space, corrected by a softmax over the nearest classes."""
