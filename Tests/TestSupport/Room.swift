package enum TestSupportRoom {}
