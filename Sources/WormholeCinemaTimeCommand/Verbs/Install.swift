import Wormhole
import WormholeCinemaTime
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

extension Verb {
  static let install = Verb(
    "install", "register the commands that start both apps", [], [],
    [
      "Registers in the container how the phone's app and the watch's app are started. The watch "
        + "starts the phone's app when it needs an image and the phone's app is not running. An "
        + "app that was started in this way ends after a minute without activity.",
      "The registration is for this user only; 'wormhole wake phone --show' prints it.",
    ],
    [Example("cinematime --container office install", "both apps")]
  ) { invocation in
    let container = try invocation.open()
    let program = try naming("find", "cinematime", Processes.ownProgram())
    for role in Role.allCases {
      try container.registerLaunch(
        of: role.rawValue, program: program,
        arguments: ["--as", role.rawValue, "--for", invocation.customer, "run", "--idle", "60"])
    }
    invocation.output.explain("both apps will be started on demand")
    return 0
  }
}
