import Testing

@Test("placeholder") func x() {}
