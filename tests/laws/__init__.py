"""The laws of the heart (ARCHITECTURE 11), each as a property on both databases."""
