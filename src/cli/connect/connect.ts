/** `tollgate connect`: sets up a client of this service, and takes it back. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { diff } from 'node:util'
import { Argument } from 'commander'
import type { PublicModel } from '../../../schemas/accounts/models.ts'
import type { LogRow } from '../../../schemas/call-log/columns.ts'
import { CLIENTS, type Client, type SettingsFile } from '../../../schemas/clients.ts'
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import { listAccounts } from '../../../schemas/management/accounts/accounts.ts'
import { createKey } from '../../../schemas/management/accounts/keys.ts'
import { fillFields, printSettings, type SettingsValues } from '../../core/clients/settings.ts'
import { PRIVATE_MODE, writePrivateFile } from '../../embedded/private-file.ts'
import { assertAgreed } from '../confirm.ts'
import type { Answer, Command, Context } from '../context.ts'
import { makePainter, printRecord } from '../output.ts'
import { type Change, setFields, undoFields } from './settings-text.ts'

const CALL_BOUND_MS = 60_000
const BOOKING_BOUND_MS = 30_000
const BOOKING_INTERVAL_MS = 250
/** The least that every protocol takes. */
const MAX_TOKENS = 16
const TEXT = 'Answer with one word: hello.'
const SECRET_PATTERN = /\bsk-[\w-]{8,}/g
const SHOWN_CHARS = 14
const HELP = `
Shows the change to the client's settings, asks, writes it, makes one minimal call, and says what that cost. A file that
cannot be edited safely stays as it is: what to set is printed instead. --undo takes back what was written, and nothing
that has changed since.`

interface Options {
  readonly account?: string
  readonly key?: string
  readonly model?: string
  readonly baseUrl?: string
  readonly yes?: true
  readonly undo?: true
}

/** A file that one client was given, with what undoes it. */
interface Written extends Change {
  readonly path: string
  readonly file: SettingsFile
}

interface Planned {
  readonly path: string
  readonly file: SettingsFile
  /** Null where the file does not exist. */
  readonly before: string | null
  /** Null where it is to be set by hand. */
  readonly after: string | null
}

export function addConnectCommand(program: Command, context: Context): void {
  program
    .command('connect')
    .description('Set up a client for this service, such as Claude Code or Codex')
    .addArgument(new Argument('<client>', 'The client').choices(Object.keys(CLIENTS)))
    .option('--model <id>', 'Model to use (default: the first that the client can call)')
    .option('--account <id>', 'Account for which a key is made (default: the only one)')
    .option('--key <key>', 'Use this key instead of a new one')
    .option('--base-url <url>', "Address of the service, without /v1 (default: this service's own)")
    .option('--yes', 'Do not ask')
    .option('--undo', 'Take back what was written')
    .addHelpText('after', HELP)
    .example('connect claude')
    .answers((name: string, options: Options) =>
      options.undo ? undo(context, name, options) : connect(context, name, options),
    )
}

async function connect(context: Context, name: string, options: Options): Promise<Answer> {
  const client = CLIENTS[name]!
  const { wiring, output } = context
  const base_url = (options.baseUrl ?? wiring.publicUrl()).replace(/\/+$/, '')
  const model = options.model ?? (await findModel(base_url, client.protocol))
  const account = options.key === undefined ? (options.account ?? (await findAccount(context))) : null
  const shown = planFiles(context, client, { base_url, model, key: options.key ?? 'sk-tollgate-…' })
  showChanges(context, shown)
  if (shown.some(({ after }) => after !== null) && !options.yes)
    await assertAgreed(wiring, `This would change the settings of ${client.title}`)

  const made = account === null ? null : await makeKey(context, account, client)
  const key = options.key ?? made!.key
  const planned = planFiles(context, client, { base_url, model, key })
  const written = planned.filter((plan): plan is Written => plan.after !== null)
  writeFiles(recordPath(context, name), written)
  const byHand = planned.filter(({ after }) => after === null)
  const outcome = await call(client.protocol, { base_url, model, key })
  if (outcome.error !== null) context.isNegativeAnswer()
  if (outcome.error !== null && written.length > 0)
    output.error(`Take the settings back with: connect ${name} --undo\n`)
  const json = {
    client: name,
    base_url,
    model,
    key_id: made?.id ?? null,
    written: written.map(({ path }) => path),
    by_hand: byHand.map(({ path, file }) => ({
      path,
      settings: printSettings(fillFields(file, { base_url, model, key })),
    })),
    ...outcome,
  }
  const { by_hand, ...others } = json
  const texts = by_hand.map(({ path, settings }) => `\nSet this in ${path}:\n\n${settings}`)
  return { json, text: () => printRecord(others) + texts.join('') }
}

async function undo(context: Context, name: string, options: Options): Promise<Answer> {
  const record = recordPath(context, name)
  if (!existsSync(record)) throw new Error(`Nothing was written for ${CLIENTS[name]!.title} here.`)
  const files: Written[] = JSON.parse(readFileSync(record, 'utf8'))
  const plans = files.map((written) => {
    const text = readIfThere(written.path)
    // A file that the user has removed stays so.
    const undone = text === null ? { text: null, kept: [] } : undoFields(text, written.file, written)
    return { ...written, text, undone }
  })
  showChanges(
    context,
    plans.map(({ path, file, text, undone }) => ({
      path,
      file,
      before: text,
      after: undone === null ? null : (undone.text ?? ''),
    })),
  )
  if (!options.yes) await assertAgreed(context.wiring, `This would change the settings of ${name}`)
  for (const { path, text, undone } of plans) {
    if (undone === null || undone.text === text) continue
    if (undone.text === null) rmSync(path)
    else writeFileSync(path, undone.text)
  }
  const done = plans.filter(({ undone }) => undone !== null)
  const json = {
    client: name,
    undone: done.map(({ path }) => path),
    kept: done.flatMap(({ path, undone }) => undone!.kept.map((field) => `${path}: ${field}`)),
    by_hand: plans.filter(({ undone }) => undone === null).map(({ path }) => path),
  }
  // The record still says what the file was like before.
  if (json.by_hand.length === 0) rmSync(record)
  return { json, text: () => printRecord(json) }
}

const readIfThere = (path: string): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null)

const findHome = ({ wiring }: Context): string => wiring.env.HOME || homedir()

function planFiles(context: Context, client: Client, values: SettingsValues): Planned[] {
  const { env } = context.wiring
  const { variable, default: standard } = client.folder
  const folder = (variable !== null && env[variable]) || join(findHome(context), standard)
  return client.files.map((entry): Planned => {
    const file = fillFields(entry, values)
    if (file.format === 'by hand') return { path: file.names[0]!, file, before: null, after: null }
    const paths = file.names.map((name) => join(folder, name))
    const path = paths.find((one) => existsSync(one)) ?? paths.at(-1)!
    const before = readIfThere(path)
    return { path, file, before, after: setFields(before ?? '', file) }
  })
}

const maskSecrets = (text: string): string =>
  text.replace(SECRET_PATTERN, (secret) => `${secret.slice(0, SHOWN_CHARS)}…`)

function showChanges({ output }: Context, plans: readonly Planned[]): void {
  const paint = makePainter(output.isColoured)
  for (const { path, before, after } of plans) {
    if (after === null || after === (before ?? '')) continue
    const [old, next] = [before ?? '', after].map((text) => text.replace(/\n$/, '').split('\n'))
    const lines = diff(old!, next!).map(([operation, line]) => {
      if (operation === 0) return `  ${line}`
      return operation === 1 ? paint('red', `- ${line}`) : paint('green', `+ ${line}`)
    })
    output.error(`${path}\n${maskSecrets(lines.join('\n'))}\n\n`)
  }
}

const recordPath = (context: Context, name: string): string => {
  const state = context.wiring.env.XDG_STATE_HOME || join(findHome(context), '.local/state')
  return join(state, 'tollgate/connect', `${name}.json`)
}

/** Writes first what undoes it. What an earlier run wrote is undone with it. */
function writeFiles(record: string, files: readonly Written[]): void {
  if (files.length === 0) return
  const earlier: Written[] = existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : []
  const recorded = files.map((file) => {
    const former = earlier.find(({ path }) => path === file.path)
    const undone = former && undoFields(file.before ?? '', former.file, former)
    return undone ? { ...file, before: undone.text } : file
  })
  mkdirSync(dirname(record), { recursive: true, mode: 0o700 })
  writePrivateFile(record, JSON.stringify(recorded))
  for (const { path, after } of files) {
    mkdirSync(dirname(path), { recursive: true })
    // In place: a link to a file that is kept elsewhere stays one.
    writeFileSync(path, after, { mode: PRIVATE_MODE })
  }
}

async function findAccount(context: Context): Promise<string> {
  const { runOperation } = await import('../operations/run.ts')
  const { data } = await runOperation(listAccounts, {}, context)
  const accounts = data as { readonly id: string }[]
  if (accounts.length === 1) return accounts[0]!.id
  throw new Error(`Name the account with --account: there are ${accounts.length}. Or use a key with --key.`)
}

async function makeKey(context: Context, account_id: string, { title }: Client) {
  const { runOperation } = await import('../operations/run.ts')
  const made = await runOperation(createKey, { account_id, name: title }, context)
  return made as { readonly id: string; readonly key: string }
}

/** Returns the first model that is served in the protocol: natively, else by translation. */
async function findModel(baseUrl: string, protocol: ChatProtocol): Promise<string> {
  const { models } = await get<{ models: readonly PublicModel[] }>(baseUrl, '/api/v1/models/public')
  const chat = models.filter(({ callable, endpoint_type }) => callable && endpoint_type === null)
  const served =
    chat.find(({ supported_protocols: native }) => native.includes(protocol)) ??
    chat.find(({ translated_protocols: translated }) => translated.includes(protocol))
  if (served !== undefined) return served.id
  throw new Error(`No model serves clients of ${protocol}. Name one with --model.`)
}

/** Returns the answer of an endpoint, whose form the caller knows. */
async function get<Answer>(
  baseUrl: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const signal = AbortSignal.timeout(CALL_BOUND_MS)
  const response = await fetch(baseUrl + path, { headers, signal }).catch((error: Error) => {
    throw new Error(`No answer from ${baseUrl}: ${(error.cause as Error)?.message ?? error.message}`)
  })
  if (!response.ok) throw new Error(`${baseUrl}${path} answered ${response.status}.`)
  return (await response.json()) as Answer
}

const messages = [{ role: 'user', content: TEXT }]
const CALLS: Readonly<Record<ChatProtocol, (model: string) => readonly [path: string, body: object]>> = {
  'chat-completions': (model) => ['/v1/chat/completions', { model, max_tokens: MAX_TOKENS, messages }],
  messages: (model) => ['/v1/messages', { model, max_tokens: MAX_TOKENS, messages }],
  responses: (model) => ['/v1/responses', { model, max_output_tokens: MAX_TOKENS, input: TEXT }],
  'generate-content': (model) => [
    `/v1beta/models/${encodeURIComponent(model)}:generateContent`,
    {
      contents: [{ role: 'user', parts: [{ text: TEXT }] }],
      generationConfig: { maxOutputTokens: MAX_TOKENS },
    },
  ],
}

/** Makes the smallest call of the client's protocol, and waits for what it cost. */
async function call(protocol: ChatProtocol, { base_url, model, key }: SettingsValues) {
  const [path, body] = CALLS[protocol](model)
  const authorization = `Bearer ${key}`
  const response = await fetch(base_url + path, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(CALL_BOUND_MS),
  })
  const text = await response.text()
  if (!response.ok) return { cost: null, error: `${response.status}: ${text}` }
  const id = response.headers.get('x-request-id') ?? ''
  const bound = performance.now() + BOOKING_BOUND_MS
  while (performance.now() < bound) {
    const { data } = await get<{ data: readonly LogRow[] }>(base_url, `/v1/logs?limit=1&ref=${id}`, {
      authorization,
    })
    const [row] = data
    if (row !== undefined) return { cost: `${row.cost} credits`, error: null }
    await sleep(BOOKING_INTERVAL_MS)
  }
  return { cost: null, error: null }
}
