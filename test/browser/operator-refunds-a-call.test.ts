/** An operator finds the dearest account, gives back the charge of its call by the rule of all changes, and the call says so. */
import t from 'tap'
import { borrowService } from '../support/lend-services.ts'
import {
  button,
  callsInLog,
  FAST_COST,
  heading,
  link,
  row,
  STORY_CONFIG,
  signIn,
  withEachHand,
} from './support.ts'

t.test('operator', async (t) => {
  // The charge is a large amount here.
  const service = await borrowService(t, `${STORY_CONFIG}wallet: { confirm_above: "10" }\n`)
  const { database } = service

  await withEachHand(t, 'refund', async (t, { hand, page, look }) => {
    const { key } = await service.newKey('1000000', { accountLogs: true })
    const { account } = (await database.keys.findCredential(database.keys.lookupHash(key)))!
    const call = { model: 'fast', messages: [{ role: 'user', content: 'Hello!' }] }
    await (await service.chat(key, call)).text()
    await callsInLog(service, key, 1)
    await signIn(service, page, { name: 'Olga', role: 'operator' })

    await hand.press(link(page, 'Usage'))
    await heading(page, 'Usage').waitFor()
    await page.getByLabel('Scope').selectOption('installation')
    const customer = row(page, account.name).first()
    await customer.waitFor()
    t.match(page.url(), /scope=installation/)
    await look('usage-of-all-accounts')

    await page.goto(`${service.baseUrl}/console/calls?account=${account.id}&period=all`)
    await hand.press(row(page, 'fast').getByRole('link').first())
    const drawer = page.getByRole('dialog', { name: 'Call' })
    await hand.press(button(drawer, 'Refund'))
    const form = page.getByRole('dialog', { name: 'Refund', exact: true })
    t.equal(await form.getByLabel('Credits').inputValue(), FAST_COST)
    await form.getByText('The balance goes from 999,984 to 1,000,000 credits.').waitFor()
    await hand.write(form.getByLabel('Credits'), '5')
    await hand.write(form.getByLabel('Reason'), 'the answer was empty')
    await look('refund')
    await hand.press(button(form, 'Refund'))
    const small = page.getByRole('dialog', { name: 'Refund 5 credits' })
    await small.getByText('The balance goes from 999,984 to 999,989 credits.').waitFor()
    t.equal(await small.getByRole('textbox').count(), 0, 'a small amount is not typed again')
    await hand.press(button(small, 'Cancel'))
    t.equal(await form.getByLabel('Reason').inputValue(), 'the answer was empty')
    await hand.write(form.getByLabel('Credits'), FAST_COST)
    await hand.press(button(form, 'Refund'))
    const large = page.getByRole('dialog', { name: `Refund ${FAST_COST} credits` })
    await large.getByText('This is more than 10 credits, so type the amount.').waitFor()
    t.ok(await button(large, 'Book it').isDisabled(), 'a large one is typed first')
    await look('refund-large')
    await hand.write(large.getByLabel(`Type ${FAST_COST} to confirm`), FAST_COST)
    await hand.press(button(large, 'Book it'))
    await drawer.getByText('the answer was empty', { exact: true }).waitFor()
    t.equal(await button(drawer, 'Refund').count(), 0, 'once')
    await look('refunded-call')
  })
})
