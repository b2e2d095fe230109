/** `tollgate token …`: management tokens, with which programs call the management API. */
import { InvalidArgumentError } from 'commander'
import { tokenActs } from '../../../pipelines/management/accounts/tokens.ts'
import {
  createInstallationToken,
  createToken,
  listInstallationTokens,
  listTokens,
  revokeInstallationToken,
} from '../../../schemas/management/accounts/tokens.ts'
import { SCOPES, type Scope } from '../../../schemas/management/operation.ts'
import { answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { runnerOf } from '../management.ts'
import { exactNames, expiry, nameText } from '../option-values.ts'
import type { JsonObject } from '../output.ts'

const LIST_FIELDS = ['id', 'prefix', 'name', 'account', 'scopes', 'expires_at', 'last_used_at', 'revoked_at']
const ACCOUNT = 'acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'

function scopeList(text: string): Scope[] {
  const names = exactNames(text)
  const scopes = SCOPES.filter((scope) => names.includes(scope))
  if (scopes.length === names.length) return scopes
  throw new InvalidArgumentError(`It is a comma list of ${SCOPES.join(', ')}.`)
}

/** Returns a token as the text of a command shows it. */
const inWords = ({ account_id, ...token }: { readonly account_id: string | null } & JsonObject) => ({
  ...token,
  account: account_id ?? 'the installation',
  expires_at: token.expires_at ?? 'never',
})

interface CreateOptions {
  readonly name: string
  readonly scopes: Scope[]
  readonly account?: string
  readonly expires?: Date
}

export function addTokenCommands(program: Command, context: Context): void {
  const { run, list } = runnerOf(context.wiring, tokenActs, () => ({}))
  const token = program
    .command('token')
    .description('management tokens: programs call the management API with them')
  const ofAccount = (command: Command) =>
    command.option('--account <id>', 'account id (default: the installation)')
  ofAccount(token.command('create').description('a new management token; prints it, this once'))
    .requiredOption('--name <name>', 'what to call it', nameText)
    .requiredOption(
      '--scopes <a,b>',
      '"read" reads everything but secrets; "keys", "accounts", "billing", "knowledge" and "admin" change what they name',
      scopeList,
    )
    .option('--expires <time>', 'RFC 3339 time from which it is refused (default: never)', expiry)
    .example(`token create --account ${ACCOUNT} --name deploy --scopes read,keys --expires 2030-01-31`)
    .answers(async ({ account, name, scopes, expires }: CreateOptions) => {
      const wanted = { name, scopes, expires_at: expires?.toISOString() }
      const made =
        account === undefined
          ? await run(createInstallationToken, wanted)
          : await run(createToken, { ...wanted, account_id: account })
      return answerRecord(made, inWords(made))
    })
  ofAccount(token.command('list').description('the management tokens, the newest first'))
    .example('token list')
    .answers(async ({ account }: { account?: string }) => {
      const json =
        account === undefined
          ? await list(listInstallationTokens, {})
          : await list(listTokens, { account_id: account })
      return answerTable(json, LIST_FIELDS, json.map(inWords))
    })
  token
    .command('revoke')
    .description('refuse a management token for good, at once')
    .argument('<id>', 'id of the token')
    .example('token revoke mtk_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string) => {
      // The installation is above accounts: its act revokes the tokens of all.
      const revoked = await run(revokeInstallationToken, { id })
      return answerRecord(revoked, inWords(revoked))
    })
}
