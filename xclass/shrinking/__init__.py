"""Make models for prediction smaller, by leaving out weights and by storing the others in fewer bits."""
