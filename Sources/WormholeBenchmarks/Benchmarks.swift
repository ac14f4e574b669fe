@main enum Benchmarks { static func main() { print("bench") } }
