import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// `wormhole-stress`: many processes, under all kinds of harm.
@main enum Stress {
  static func main() {
    let arguments = Processes.arguments.map { String(cString: $0) }
    if arguments.first == Worker.argument { Worker.run(Array(arguments.dropFirst())) }
    Table.stress.main(defaulting: "run")
  }
}
