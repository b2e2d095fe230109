/** `tollgate user …`: people who sign in, and the links that let them. */
import { Option } from 'commander'
import { userActs } from '../../../pipelines/management/people/users.ts'
import { MEMBER_ROLES, type MemberRole } from '../../../schemas/accounts/organization.ts'
import { LOCALES, type Locale } from '../../../schemas/accounts/people.ts'
import { INSTALLATION_ROLES, type InstallationRole } from '../../../schemas/management/operation.ts'
import {
  createInvitation,
  createSignInLink,
  createUser,
  disableUser,
  enableUser,
  inviteMember,
  listInvitations,
  listMemberInvitations,
  listUsers,
  revokeInvitation,
  revokeMemberInvitation,
  setInstallationRole,
  showUser,
} from '../../../schemas/management/people/users.ts'
import { answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { type Runner, runnerOf, userDeps } from '../management.ts'
import { nameText } from '../option-values.ts'

const LIST_FIELDS = ['id', 'email', 'name', 'account_id', 'installation_role', 'enabled', 'signed_in_at']
const INVITATION_FIELDS = [
  'id',
  'email',
  'account_id',
  'role',
  'installation_role',
  'expires_at',
  'used_at',
  'revoked_at',
]
const NO_ROLE = 'none'
const USER = 'usr_01J8Z3N4V9QKX2T5W7Y0ABCDEF'
const ORGANIZATION = 'acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF'

const roleOption = (text: string) => new Option('--role <role>', text).choices([...INSTALLATION_ROLES])

export function addUserCommands(program: Command, { wiring }: Context): void {
  const acts = runnerOf(wiring, userActs, () => userDeps(wiring))
  const user = program.command('user').description('people who sign in to the console')
  addUsers(user, acts)
  addInvitations(user, acts)
}

function addUsers(user: Command, { run, list }: Runner): void {
  user
    .command('list')
    .description('every user')
    .option('--search <text>', 'part of email, name or id')
    .example('user list --search ada')
    .answers(async (input: { search?: string }) => answerTable(await list(listUsers, input), LIST_FIELDS))
  user
    .command('show')
    .description('one user')
    .argument('<id>', 'user id')
    .example(`user show ${USER}`)
    .answers(async (id: string) => answerRecord(await run(showUser, { id })))
  interface CreateOptions {
    email: string
    name: string
    locale: Locale
    role?: InstallationRole
    account?: string
  }
  user
    .command('create')
    .description('a new user with a personal account; "user link" signs them in')
    .requiredOption('--email <email>', 'email address')
    .requiredOption('--name <name>', 'what to call them', nameText)
    .addOption(new Option('--locale <locale>', 'language').choices(LOCALES).default('en'))
    .addOption(roleOption('role in the installation (default: none)'))
    .option('--account <id>', 'a personal account without a user (default: a new one with the trial credit)')
    .example('user create --email ada@example.com --name Ada')
    .answers(async ({ email, name, locale, role, account }: CreateOptions) => {
      const input = { email, name, locale, installation_role: role ?? null, account_id: account ?? null }
      return answerRecord(await run(createUser, input))
    })
  user
    .command('link')
    .description('a link that signs a user in, once, within 15 minutes')
    .argument('<id>', 'user id')
    .example(`user link ${USER}`)
    .answers(async (id: string) => answerRecord(await run(createSignInLink, { id })))
  for (const [name, operation, description] of [
    ['enable', enableUser, 'let a user sign in again'],
    ['disable', disableUser, 'end the sessions of a user, and refuse new ones'],
  ] as const)
    user
      .command(name)
      .description(description)
      .argument('<id>', 'user id')
      .example(`user ${name} ${USER}`)
      .answers(async (id: string) => answerRecord(await run(operation, { id })))
  user
    .command('role')
    .description('set the role of a user in the installation; their sessions end')
    .argument('<id>', 'user id')
    .addOption(
      new Option('--role <role>', 'operator, auditor, or none')
        .choices([...INSTALLATION_ROLES, NO_ROLE])
        .makeOptionMandatory(),
    )
    .example(`user role ${USER} --role auditor`)
    .answers(async (id: string, { role }: { role: InstallationRole | typeof NO_ROLE }) =>
      answerRecord(await run(setInstallationRole, { id, installation_role: role === NO_ROLE ? null : role })),
    )
}

function addInvitations(user: Command, { run, list }: Runner): void {
  interface InviteOptions {
    email: string
    organization?: string
    as?: MemberRole
    role?: InstallationRole
  }
  const invite = user
    .command('invite')
    .description('a link by which a person becomes a user, once, within 7 days')
    .requiredOption('--email <email>', 'email address; the invitation is for it alone')
    .option('--organization <id>', 'invite to this organization')
    .addOption(new Option('--as <role>', 'role in the organization (default: member)').choices(MEMBER_ROLES))
    .addOption(roleOption('role in the installation (default: none)').conflicts('organization'))
    .example(`user invite --email ada@example.com --organization ${ORGANIZATION} --as admin`)
  invite.answers(async ({ email, organization, as, role }: InviteOptions) => {
    if (organization === undefined && as !== undefined)
      invite.error('error: --as is the role in an --organization')
    return answerRecord(
      organization === undefined
        ? await run(createInvitation, { email, installation_role: role ?? null })
        : await run(inviteMember, { email, account_id: organization, role: as ?? 'member' }),
    )
  })
  user
    .command('invitations')
    .description('the invitations to an organization, or those to none')
    .option('--organization <id>', 'account id of the organization')
    .example('user invitations')
    .answers(async ({ organization }: { organization?: string }) =>
      answerTable(
        organization === undefined
          ? await list(listInvitations, {})
          : await list(listMemberInvitations, { account_id: organization }),
        INVITATION_FIELDS,
      ),
    )
  user
    .command('uninvite')
    .description('refuse an invitation from now on')
    .argument('<id>', 'invitation id')
    .option('--organization <id>', 'account id of the organization that it invites to')
    .example('user uninvite inv_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async (id: string, { organization }: { organization?: string }) =>
      answerRecord(
        organization === undefined
          ? await run(revokeInvitation, { id })
          : await run(revokeMemberInvitation, { id, account_id: organization }),
      ),
    )
}
