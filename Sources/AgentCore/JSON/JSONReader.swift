package enum JSONReader {}
