@main enum Command { static func main() { print("demo") } }
