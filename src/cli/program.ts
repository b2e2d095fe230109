import { CommanderError } from 'commander'
import { VERSION } from '../server/version.ts'
import { addAccountCommands } from './accounts/account.ts'
import { addAuditCommand } from './accounts/audit.ts'
import { addBudgetCommands } from './accounts/budget.ts'
import { addKeyCommands } from './accounts/key.ts'
import { addMasterKeyCommands } from './accounts/master-key.ts'
import { addMemberCommands } from './accounts/member.ts'
import { addTokenCommands } from './accounts/token.ts'
import { addUsageCommand } from './accounts/usage.ts'
import { addUserCommands } from './accounts/user.ts'
import { addWalletCommands } from './accounts/wallet.ts'
import { addCatalogueCommands } from './config/catalogue.ts'
import { addChannelsCommand } from './config/channels.ts'
import { addConfigCommands } from './config/config.ts'
import { addProvidersCommand } from './config/providers.ts'
import { Command, type Context, type Output } from './context.ts'
import { addJournalCommands } from './journal.ts'
import { addAgentCommands } from './knowledge/agent.ts'
import { addKnowledgeCommands } from './knowledge/kb.ts'
import { addLogsCommands } from './logs/logs.ts'
import { addWebhookCommands } from './notifications/webhook.ts'
import { addPartitionsCommand } from './partitions.ts'
import { addPaymentCommands } from './payments.ts'
import { addTaskCommands } from './task.ts'
import type { Wiring } from './wiring.ts'

const EXIT_OK = 0
const EXIT_FAILED = 1
const EXIT_WRONG_USAGE = 2
/** Commander's codes for a requested end. */
const ASKED_FOR = new Set(['commander.helpDisplayed', 'commander.version'])

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
    output.error(`error: ${messageOf(error)}\n`)
    return EXIT_FAILED
  }
}

/** Returns the program with every command; `serve` is the action of the one that runs the service. */
export function buildProgram(
  context: Context,
  serve: (options: { readonly json: boolean }) => Promise<void>,
): Command {
  const program = new Command(context.output, 'tollgate')
    .description('A prepaid gateway in front of many model providers.')
    .version(VERSION, '--version', 'print the version')
    .showHelpAfterError('(--help says how)')
    .exitOverride()
    .configureOutput({ writeOut: context.output.answer, writeErr: context.output.error })
    .example('account list --json')
  addAccountCommands(program, context)
  addUserCommands(program, context)
  addWalletCommands(program, context)
  addPaymentCommands(program, context)
  addMemberCommands(program, context)
  addKeyCommands(program, context)
  addMasterKeyCommands(program, context)
  addTokenCommands(program, context)
  addBudgetCommands(program, context)
  addAgentCommands(program, context)
  addKnowledgeCommands(program, context)
  addLogsCommands(program, context)
  addTaskCommands(program, context)
  addJournalCommands(program, context)
  addPartitionsCommand(program, context)
  addWebhookCommands(program, context)
  addUsageCommand(program, context)
  addAuditCommand(program, context)
  addConfigCommands(program, context)
  addChannelsCommand(program, context)
  addProvidersCommand(program)
  addCatalogueCommands(program, context)
  program
    .command('serve')
    .description('run the service; what npm start does')
    .option('--json', 'print where it is as one JSON value once it is up')
    .example('serve')
    .action(({ json = false }: { json?: boolean }) => serve({ json }))
  return program
}

/** Errors of several addresses tried in turn have no message. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ')
  return error.message || error.name
}
