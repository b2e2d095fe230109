/** `tollgate member …`: who belongs to an organization, and who decides on its keys. */
import { Option } from 'commander'
import { organizationActs } from '../../../pipelines/management/accounts/organizations.ts'
import { MEMBER_ROLES, type MemberRole } from '../../../schemas/accounts/organization.ts'
import { listMembers, putMember, removeMember } from '../../../schemas/management/accounts/organizations.ts'
import { answerRecord, answerTable, type Command, type Context } from '../context.ts'
import { runnerOf } from '../management.ts'

const LIST_FIELDS = ['account_id', 'name', 'email', 'role', 'spent', 'created_at']

interface MemberOptions {
  organization: string
  account: string
}

const ofOrganization = (command: Command): Command =>
  command.requiredOption('--organization <id>', 'account id of the organization')
const ofMember = (command: Command): Command =>
  ofOrganization(command).requiredOption('--account <id>', 'account id of the member, a personal one')

export function addMemberCommands(program: Command, context: Context): void {
  const { run, list } = runnerOf(context.wiring, organizationActs, () => ({}))
  const member = program.command('member').description('members and admins of organizations')

  ofMember(member.command('add').description('add a member, or change what a member is'))
    .addOption(
      new Option('--role <role>', 'an owner or admin approves keys').choices(MEMBER_ROLES).default('member'),
    )
    .example(
      'member add --organization acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --account acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN --role admin',
    )
    .answers(async ({ organization, account, role }: MemberOptions & { role: MemberRole }) =>
      answerRecord(await run(putMember, { account_id: organization, member_id: account, role })),
    )
  ofMember(member.command('remove').description('remove a member, and revoke the keys issued to it'))
    .example(
      'member remove --organization acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF --account acc_01J8Z3N4V9QKX2T5W7Y0GHJKMN',
    )
    .answers(async ({ organization, account }: MemberOptions) =>
      answerRecord(await run(removeMember, { account_id: organization, member_id: account })),
    )
  ofOrganization(member.command('list').description('the members of an organization'))
    .example('member list --organization acc_01J8Z3N4V9QKX2T5W7Y0ABCDEF')
    .answers(async ({ organization }: Pick<MemberOptions, 'organization'>) =>
      answerTable(await list(listMembers, { account_id: organization }), LIST_FIELDS),
    )
}
