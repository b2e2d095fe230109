import { CommanderError } from 'commander'
import { VERSION } from '../server/version.ts'
import { addCatalogCommands } from './config/catalog.ts'
import { addChannelsCommand, addProvidersCommand } from './config/channels.ts'
import { addConfigCommands } from './config/config.ts'
import { addConnectCommand } from './connect/connect.ts'
import { Command, type Context, type Output } from './context.ts'
import { addImport } from './kb-import.ts'
import { addFind } from './logs/find.ts'
import { addRebuild } from './logs/rebuild.ts'
import { addTail } from './logs/tail.ts'
import { addMasterKeyCommands } from './master-key.ts'
import { addOperationCommands } from './operations/commands.ts'
import { addVerifyCommand } from './wallet.ts'
import type { Wiring } from './wiring.ts'

const EXIT_OK = 0
export const EXIT_FAILED = 1
const EXIT_WRONG_USAGE = 2
/** Commander's codes for a requested end. */
const ASKED_FOR = new Set(['commander.helpDisplayed', 'commander.version'])

/** Commands that have commands of their own, in the order of the help. */
const GROUPS: Readonly<Record<string, string>> = {
  account: 'Accounts and their limits',
  user: 'People who sign in to the console',
  wallet: 'Credits: top up, adjust, refund, show, audit',
  payments: 'Card payments: list, refund, reconcile, refused events',
  member: 'Members and admins of organizations',
  key: 'API keys',
  'master-key': 'The key that encrypts API keys at rest',
  token: 'Management tokens, with which programs call the management API',
  budget: 'Limits on what may be spent in a day, a week or a month',
  agent: 'Agents of organizations',
  kb: 'Knowledge bases',
  logs: 'Calls of every account: follow them, find one, rebuild the log',
  task: 'Videos, images, music and other work that outlives its request',
  journal: 'Journals of gateways, including those of machines that are gone',
  webhook: 'Endpoints to which events are posted',
  config: 'The configuration file',
  channels: 'Upstream channels',
  status: 'Notes on the status page',
  catalog: 'Models and prices of the configuration',
}
const BY_HAND = [
  addVerifyCommand,
  addMasterKeyCommands,
  addImport,
  addTail,
  addFind,
  addRebuild,
  addConfigCommands,
  addChannelsCommand,
  addProvidersCommand,
  addCatalogCommands,
  addConnectCommand,
]

const STANDARD: Output = {
  answer: (text) => void process.stdout.write(text),
  error: (text) => void process.stderr.write(text),
  // Heeds NO_COLOR.
  isColoured: process.stdout.isTTY === true && process.stdout.hasColors(),
}

/**
 * Runs the command of the arguments after the program's name. Answers go to stdout, errors to stderr.
 * @returns the exit code: 0 done; 1 an error, or the answer is no; 2 wrong usage
 */
export async function run(
  argv: readonly string[],
  wiring: Wiring,
  output: Output = STANDARD,
): Promise<number> {
  let exitCode = EXIT_OK
  const isNegativeAnswer = () => {
    exitCode = EXIT_FAILED
  }
  const serve = async (options: { readonly json: boolean }) => {
    exitCode = await wiring.serve(options)
  }
  const program = buildProgram({ wiring, output, isNegativeAnswer }, serve)
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommanderError) return ASKED_FOR.has(error.code) ? EXIT_OK : EXIT_WRONG_USAGE
    output.error(`error: ${printError(error)}\n`)
    return EXIT_FAILED
  } finally {
    await wiring.close()
  }
}

/** Returns the program with every command; `serve` is the action of the one that runs the service. */
export function buildProgram(
  context: Context,
  serve: (options: { readonly json: boolean }) => Promise<void>,
): Command {
  const program = new Command('tollgate')
    .description('A prepaid gateway in front of many model providers')
    .version(VERSION, '--version', 'Print the version')
    .helpOption('-h, --help', 'Print help')
    .helpCommand('help [command]', 'Print the help of a command')
    .showHelpAfterError('(use --help to see how)')
    .exitOverride()
    .configureOutput({ writeOut: context.output.answer, writeErr: context.output.error })
    .example('account list --json')
  for (const [name, description] of Object.entries(GROUPS))
    program.command(name).description(description).configureHelp({ sortSubcommands: true })
  addOperationCommands(program, context)
  for (const add of BY_HAND) add(program, context)
  program
    .command('serve')
    .description('Run the service, as npm start does')
    .option('--json', 'Print its addresses as one JSON value once it is up')
    .example('serve')
    .action(({ json = false }: { json?: boolean }) => serve({ json }))
  return program
}

/** Errors of several addresses tried in turn have no message. */
export function printError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.message === '') return error.errors.map(printError).join('; ')
  return error.message || error.name
}
