/** An owner gives a member a budget; the member nears it and sees it; the call that is refused for it says why. */
import t from 'tap'
import { ONE_CREDIT, parseCredits } from '../../schemas/money.ts'
import { withPage } from '../support/browser.ts'
import { until } from '../support/eventually.ts'
import { borrowService } from '../support/lend-services.ts'
import {
  button,
  FAST_COST,
  heading,
  link,
  newOrganization,
  row,
  STORY_CONFIG,
  signIn,
  withEachHand,
} from './support.ts'

/** Five calls bring the member near the budget; it does not let a long one through. */
const BUDGET = String(Number(FAST_COST) * 6)
const CALLS = 5

t.test('budget', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const { baseUrl, database } = service

  await withEachHand(t, 'owner', (t, { hand, page: owner, look }) =>
    withPage(t, `member ${hand.name}`, async (member) => {
      const anna = await signIn(service, owner, { name: 'Anna' })
      const ben = await signIn(service, member, { name: 'Ben' })
      const name = `Acme budgets ${hand.name}`
      const account = await newOrganization(service, { name, credit: 1_000_000n * ONE_CREDIT }, anna)
      await database.organizations.putMember(account.id, ben.accountId, 'member')
      const asked = await database.keyRequests.create({
        organizationId: account.id,
        memberId: ben.accountId,
        name: 'Desk',
      })
      const spendCap = 1_000_000n * ONE_CREDIT
      const { raw } = await database.keyRequests.approve({
        requestId: asked.id,
        by: anna.accountId,
        spendCap,
      })

      await owner.goto(`${baseUrl}/console/members?account=${account.id}`)
      await hand.press(button(row(owner, ben.email), `Budgets of ${ben.email}`))
      const budgets = owner.getByRole('dialog', { name: `Budgets of ${ben.email}` })
      await hand.press(button(budgets, 'Set a budget'))
      const set = owner.getByRole('dialog', { name: 'Set a budget' })
      await hand.write(set.getByLabel('Amount in credits'), BUDGET)
      await hand.choose(set.getByLabel('Period'), 'Weekly')
      await hand.write(set.getByLabel('Time zone'), 'Nowhere/City')
      await hand.press(button(set, 'Save'))
      await set.getByRole('alert').filter({ hasText: 'Nowhere/City' }).waitFor()
      await hand.write(set.getByLabel('Time zone'), 'Europe/Berlin')
      await hand.press(button(set, 'Save'))
      await budgets.getByText('Weekly').waitFor()
      await owner.keyboard.press('Escape')

      const call = { model: 'fast', max_tokens: 5, messages: [{ role: 'user', content: 'Hello!' }] }
      for (let made = 0; made < CALLS; made += 1) t.equal((await service.chat(raw, call)).status, 200)
      await until('the calls are booked', async () => {
        const [state] = await database.budgets.list(account.id)
        return state!.spent === parseCredits(String(Number(FAST_COST) * CALLS))
      })
      const refused = await service.chat(raw, { ...call, max_tokens: 5_000 })
      t.equal(refused.status, 402)

      await owner.reload()
      await row(owner, ben.email)
        .getByText(`${Number(FAST_COST) * CALLS}.00`)
        .first()
        .waitFor()
      await look('members-budget')
      await hand.press(link(owner, 'Home'))
      await owner.getByRole('heading', { name: 'Budgets nearly spent' }).waitFor()

      await member.goto(`${baseUrl}/console/?account=${account.id}`)
      await member.getByRole('heading', { name: 'Budgets of your keys' }).waitFor()
      await member
        .getByText(`${Number(FAST_COST) * CALLS}.00`)
        .first()
        .waitFor()
      await look('home-own-budget', member)

      await hand.press(link(owner, 'Calls'))
      await heading(owner, 'Calls').waitFor()
      await row(owner, 'fast').first().waitFor()
      await owner.keyboard.press('Control+K')
      await owner.getByRole('combobox', { name: 'Find a page, a name or any id' }).waitFor()
      await owner.keyboard.type(refused.headers.get('x-gateway-trace')!)
      await owner.getByRole('option', { name: 'fast' }).waitFor()
      await owner.keyboard.press('Enter')
      const drawer = owner.getByRole('dialog', { name: 'Call' })
      await drawer
        .getByText(/weekly budget of the member/)
        .first()
        .waitFor()
      await hand.press(button(drawer, 'Close'))

      await hand.press(link(owner, 'Keys'))
      await hand.press(owner.getByRole('link', { name: 'Desk' }))
      const key = owner.getByRole('dialog', { name: 'Desk' })
      await key.getByText('No budget limits spending here.').waitFor()
      await hand.press(button(key, 'Set a budget'))
      await hand.write(set.getByLabel('Amount in credits'), '1000')
      await hand.press(button(set, 'Save'))
      await key.getByText('Monthly').waitFor()
      await look('key-budget')
      await hand.press(button(key, 'Close'))

      await hand.press(link(owner, 'Billing'))
      await hand.press(button(owner, 'Set a budget'))
      await hand.write(set.getByLabel('Amount in credits'), '5000')
      await hand.press(button(set, 'Save'))
      await owner.getByText('5,000.00').waitFor()
      await hand.press(button(owner, 'Delete'))
      const remove = owner.getByRole('dialog', { name: `Delete a budget of ${name}` })
      await hand.write(remove.getByRole('textbox'), name)
      await hand.press(button(remove, 'Delete'))
      await owner.getByText('No budget limits spending here.').waitFor()
      t.equal((await database.budgets.list(account.id)).length, 2)
    }),
  )
})
