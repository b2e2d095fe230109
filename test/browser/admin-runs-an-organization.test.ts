/**
 * An organization end to end: a colleague is invited, requests a key, gets it with a cap, spends until it is near and
 * reached, and loses it.
 */
import t from 'tap'
import { parseCredits } from '../../schemas/money.ts'
import { withPage } from '../support/browser.ts'
import { until } from '../support/eventually.ts'
import { HANDS } from '../support/hands.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, FAST_COST, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

/** Five calls bring the key near its cap; its estimate does not let a sixth through. */
const CAP = String(Number(FAST_COST) * 6)
const CALLS = 5

t.test('organization', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)

  await withEachHand(t, 'organization', (t, { hand, page: admin, look }) =>
    withPage(t, `member ${hand.name}`, async (member) => {
      const name = `Acme ${hand.name}`
      const email = `ben-${process.pid}-${HANDS.indexOf(hand)}@example.com`
      const revoked = `eve-${process.pid}-${HANDS.indexOf(hand)}@example.com`
      await signIn(service, admin, { name: 'Anna' })
      await hand.press(button(admin, 'Create an organization'))
      const create = admin.getByRole('dialog', { name: 'Create an organization' })
      // A page shows two spaces in a row as one.
      await hand.write(create.getByLabel('Name'), name.replace(' ', '  '))
      await hand.press(button(create, 'Create'))
      await heading(admin, 'Members').waitFor()
      const account = new URL(admin.url()).searchParams.get('account')!
      await service.database.wallets.adjust(account, 100_000_000_000n, { reason: 'a test' })

      await hand.press(button(admin, 'Invite a member'))
      const invite = admin.getByRole('dialog', { name: 'Invite a member' })
      await hand.write(invite.getByLabel('Email'), email)
      await look('members-invite')
      await hand.press(button(invite, 'Create the link'))
      const invitation = await invite.locator('pre').textContent()
      await hand.press(button(invite, 'Done'))
      const invited = admin.getByRole('table', { name: 'Invitations' })
      await row(invited, email).getByText('Open').waitFor()
      await hand.press(button(admin, 'Invite a member'))
      await hand.write(invite.getByLabel('Email'), revoked)
      await hand.press(button(invite, 'Create the link'))
      await hand.press(button(invite, 'Done'))
      await hand.press(button(row(invited, revoked), 'Revoke'))
      await row(invited, revoked).getByText('Revoked').waitFor()

      await member.goto(invitation!)
      await hand.write(member.getByLabel('Name'), 'Ben')
      await hand.write(member.getByLabel('Password'), 'four words make one')
      await hand.press(button(member, 'Create an account'))
      await heading(member, 'Home').waitFor()
      t.equal(new URL(member.url()).searchParams.get('account'), account, 'the invitation leads to it')
      await member.goto(`${service.baseUrl}/console/billing?account=${account}`)
      await member.getByText('Your role in this account does not include this page.').waitFor()
      t.equal(await member.getByText('Balance', { exact: true }).count(), 0)
      await hand.press(link(member, 'Home'))
      await hand.press(button(member, 'Request a key'))
      const ask = member.getByRole('dialog', { name: 'Request a key' })
      await hand.write(ask.getByLabel('Name'), 'Nightly report')
      await hand.write(ask.getByLabel('Note'), 'for the sales figures')
      await hand.press(button(ask, 'Request a key'))
      await row(member, 'Nightly report').getByText('Pending').waitFor()

      await admin.reload()
      await admin.getByRole('navigation', { name: 'Pages' }).getByText('1 request for a key').waitFor()
      await row(admin, 'Nightly report').getByText(email).waitFor()
      await row(invited, email).getByText('Accepted').waitFor()
      await look('members')
      await hand.press(button(row(admin, 'Nightly report'), 'Issue the key'))
      const issue = admin.getByRole('dialog', { name: 'Issue Nightly report' })
      await hand.write(issue.getByLabel('Spend cap in credits'), CAP)
      await hand.press(issue.getByLabel('All models, including ones added later'))
      await hand.write(issue.getByLabel('Only these models'), 'fast')
      await admin.getByRole('option', { name: 'fast' }).waitFor()
      await admin.keyboard.press('Enter')
      await hand.write(issue.getByLabel('Requests per minute'), '100')
      await look('members-issue')
      await hand.press(button(issue, 'Issue the key'))
      await issue.getByText(`${email} can now reveal the key`).waitFor()
      await issue.getByText('Budgets', { exact: true }).waitFor()
      await look('members-issued')
      t.equal(await issue.locator('pre').count(), 0, 'the admin does not see the key')
      await member.reload()
      await hand.press(button(row(member, 'Nightly report'), 'Reveal the key'))
      const secret = member.getByRole('dialog', { name: 'Nightly report' })
      const key = (await secret.locator('pre').first().textContent()) ?? ''
      await hand.press(button(secret, 'Done'))
      await look('member-home', member)
      const [issuedKey] = await service.database.keys.list(account)
      t.match(issuedKey?.limits, { requestsPerMinute: 100 })
      await hand.press(button(issue, 'Done'))

      const call = { model: 'fast', max_tokens: 5, messages: [{ role: 'user', content: 'Hello!' }] }
      for (let made = 0; made < CALLS; made += 1) t.equal((await service.chat(key, call)).status, 200)
      t.equal((await service.chat(key, { ...call, max_tokens: 5_000 })).status, 402, 'the cap holds')
      t.equal((await service.chat(key, { ...call, model: 'broken' })).status, 400, 'so do the models')

      await until('the calls are booked', async () => {
        const issued = await service.database.keys.list(account)
        return issued[0]!.grant?.spent === parseCredits(String(Number(FAST_COST) * CALLS))
      })
      await hand.press(link(member, 'Calls'))
      await heading(member, 'Calls').waitFor()
      await row(member, 'fast').first().waitFor()
      t.equal(await member.getByRole('alert').count(), 0, 'a member sees their calls without an error')
      await look('member-calls', member)
      await hand.press(link(admin, 'Home'))
      await admin.getByRole('listitem').filter({ hasText: 'Nightly report' }).waitFor()
      await look('home-near-cap')
      await hand.press(link(admin, 'Keys'))
      await row(admin, 'Nightly report')
        .getByText(`${Number(FAST_COST) * CALLS}.00 / ${CAP}.00`)
        .waitFor()
      await look('keys-near-cap')
      await hand.press(button(row(admin, 'Nightly report'), 'Revoke'))
      const revoke = admin.getByRole('dialog', { name: 'Revoke Nightly report' })
      await hand.write(revoke.getByRole('textbox'), 'Nightly report')
      await hand.press(button(revoke, 'Revoke'))
      await row(admin, 'Nightly report').getByText('Revoked').waitFor()
      t.equal((await service.chat(key, call)).status, 401)

      await hand.press(link(admin, 'Audit'))
      await row(admin, 'key.revoke').waitFor()
      await row(admin, 'member.').first().waitFor()

      await hand.press(link(admin, 'Members'))
      const members = admin.getByRole('table', { name: 'Members' })
      const leaving = admin.getByRole('dialog', { name: `Leave ${name}` })
      const leave = async () => {
        await hand.press(button(admin, 'Leave'))
        await hand.write(leaving.getByRole('textbox'), name)
        await hand.press(button(leaving, 'Leave'))
      }
      await leave()
      await leaving.getByText('is the last owner').waitFor()
      await look('members-leave')
      await hand.press(button(leaving, 'Cancel'))
      await hand.press(button(admin, 'Leave'))
      await leaving.getByRole('textbox').waitFor()
      t.equal(await leaving.getByRole('alert').count(), 0, 'a refusal of before is gone')
      await hand.press(button(leaving, 'Cancel'))
      await hand.press(button(row(members, email), 'Remove'))
      const removing = admin.getByRole('dialog', { name: 'Remove Ben' })
      await removing.getByRole('textbox').waitFor()
      await hand.press(button(removing, 'Cancel'))

      const roleOfBen = async () => {
        const all = await service.database.organizations.listMembers(account)
        return all.find(({ name }) => name === 'Ben')?.role
      }
      const role = admin.getByRole('dialog', { name: `Role of ${email}` })
      await hand.press(button(row(members, email), 'Change role'))
      await hand.choose(role.getByLabel('Role'), 'Owner')
      await look('members-role')
      t.equal(await roleOfBen(), 'member', 'a role that is chosen is not given yet')
      await hand.press(button(role, 'Cancel'))
      await hand.press(button(row(members, email), 'Change role'))
      await hand.choose(role.getByLabel('Role'), 'Owner')
      await hand.press(button(role, 'Change'))
      await row(members, email).getByText('Owner').waitFor()
      t.equal(await roleOfBen(), 'owner')
      await leave()
      await heading(admin, 'Home').waitFor()
      t.notOk(new URL(admin.url()).searchParams.has('account'), 'who has left is at their own account')
      const switcher = admin.getByLabel('Account', { exact: true })
      await switcher.getByRole('option', { name }).waitFor({ state: 'detached' })
      t.match(await service.database.organizations.listMembers(account), [{ name: 'Ben' }])
    }),
  )
})
