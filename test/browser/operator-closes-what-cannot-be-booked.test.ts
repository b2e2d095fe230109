/** An operator closes a payment event that contradicts its payment, and abandons the journal of a machine that is gone. */
import t from 'tap'
import { connectTo } from '../support/connections.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

const REFUSAL = 'A refund of 20.00 EUR for a payment of 10.00 EUR'

t.test('integrity', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  const sql = connectTo(t, service.engines.databaseUrl)

  await withEachHand(t, 'integrity', async (t, { hand, page, look }) => {
    const event = `evt_${hand.name.replaceAll(' ', '_')}`
    const journal = `jrn_${hand.name.replaceAll(' ', '_')}`
    await sql`
      INSERT INTO payment_events (id, type, refusal, created_at)
      VALUES (${event}, 'charge.refunded', ${REFUSAL}, now())`
    await sql`
      INSERT INTO journals (id, node, directory, seen_at, open_calls, open_estimate, unbooked_calls, unbooked_cost)
      VALUES (${journal}, 'machine-seven', '/data/journal/gateway-0', now() - interval '6 minutes', 1, 500, 12, 1500000000)`
    await signIn(service, page, { name: 'Olga', role: 'operator' })
    await hand.press(link(page, 'Integrity'))
    await heading(page, 'Integrity').waitFor()

    const refused = row(page, REFUSAL)
    await refused.waitFor()
    await page.getByText(`The gateway with the journal ${journal}`).waitFor()
    await look('integrity-with-refused-event-and-silent-journal')
    await hand.press(button(refused, 'Close'))
    const closing = page.getByRole('dialog', { name: 'Close the event' })
    await hand.write(closing.getByLabel('Reason'), 'refunded twice by mistake, charged again by invoice')
    await look('close-refused-event')
    await hand.press(button(closing, 'Close'))
    await page.getByText('Payment event closed').waitFor()
    await refused.waitFor({ state: 'detached' })

    await hand.press(button(page, 'Import a journal'))
    const importing = page.getByRole('dialog', { name: 'Import a journal' })
    await hand.write(importing.getByLabel('Folder'), '/nowhere/journal/gateway-0')
    await hand.press(button(importing, 'Import'))
    await importing.getByText('has no journal that may be imported').waitFor()
    t.equal(await importing.getByLabel('Folder').getAttribute('aria-invalid'), 'true', 'beside its field')
    await look('import-of-no-journal')
    await hand.press(button(importing, 'Cancel'))
    await hand.press(button(page.getByRole('dialog', { name: 'Discard what you typed?' }), 'Discard'))

    await hand.press(button(row(page, journal), 'Abandon'))
    const abandoning = page.getByRole('dialog', { name: `Abandon ${journal}` })
    await hand.write(abandoning.getByRole('textbox'), journal)
    await look('abandon-journal')
    await hand.press(button(abandoning, 'Abandon'))
    await page.getByText('Journal abandoned').waitFor()
    await row(page, journal).waitFor({ state: 'detached' })
    const [{ closed_by, outcome }] = await sql<[{ closed_by: string | null; outcome: string | null }]>`
      SELECT
        (SELECT closed_by FROM payment_events WHERE id = ${event}),
        (SELECT outcome FROM journals WHERE id = ${journal})`
    t.ok(closed_by)
    t.equal(outcome, 'abandoned')
  })
})
