"""A gate sends each example to one of several experts, each a softmax over few of the classes."""
