/** The hosted pages of the payment provider: a card form, and the bank's confirmation. */

import { type OpenedRequest, type ReceivedRequest, SimulatedFailure, type WholeAnswer } from '../dialect.ts'
import { preventsWork } from '../directives/faults.ts'
import type { PaymentBook } from './book.ts'
import { readFields, readText } from './form.ts'
import { type Session, testCard } from './objects.ts'

const HTTP_SEE_OTHER = 303
const HTTP_BAD_INPUT = 400
const DEFAULT_EXPIRY = { month: 12, year: 2034 }

/** Stripe's list, which differs from `Intl` in a dozen currencies. */
const WITHOUT_DECIMALS = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '))
const WITH_THREE_DECIMALS = new Set('bhd jod kwd omr tnd'.split(' '))

const countDecimals = (currency: string): number =>
  WITHOUT_DECIMALS.has(currency) ? 0 : WITH_THREE_DECIMALS.has(currency) ? 3 : 2

const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { margin: 0 auto; padding: 2rem 1rem; max-width: 26rem }
label { display: block; margin: 1rem 0 .25rem; font-weight: 600 }
input { box-sizing: border-box; width: 100%; padding: .6rem; font: inherit }
button { width: 100%; margin-top: 1rem; padding: .75rem; font: inherit; font-weight: 600; cursor: pointer }
table { width: 100%; margin-top: 2rem; border-collapse: collapse; font-size: .875rem }
th, td { padding: .25rem 0; text-align: left; vertical-align: top }
.problem { padding: .5rem .75rem; border: 1px solid; border-radius: .25rem }
`

const page = (title: string, content: string, status = 200): WholeAnswer => ({
  kind: 'whole',
  status,
  headers: {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
  },
  body: `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escapeHtml(title)}</title><style>${STYLE}</style>
<main><p>Simulated payment provider: no money moves.</p><h1>${escapeHtml(title)}</h1>${content}</main></html>`,
  tokens: 0,
})

const redirect = (location: string): WholeAnswer => ({
  kind: 'whole',
  status: HTTP_SEE_OTHER,
  headers: { location },
  body: '',
  tokens: 0,
})

const printTitle = ({ mode, amount_total, currency }: Session): string => {
  if (mode === 'setup') return 'Save a card'
  const style = { style: 'currency', currency: currency ?? 'usd' } as const
  const units = (amount_total ?? 0) / 10 ** countDecimals(style.currency)
  return `Pay ${new Intl.NumberFormat('en', style).format(units)}`
}

const CARDS = [
  ['4242 4242 4242 4242', 'is paid'],
  ['4000 0000 0000 0002', 'is declined'],
  ['4000 0025 0000 3155', '3-D Secure, once'],
  ['4000 0027 6000 3184', '3-D Secure, every time'],
  ['4000 0000 0000 0341', 'can be saved, then is declined'],
] as const

function cardPage(session: Session, problem: string | null): WholeAnswer {
  const rows = CARDS.map(([number, effect]) => `<tr><td>${number}</td><td>${effect}</td></tr>`).join('')
  const content = `
${problem === null ? '' : `<p class="problem" role="alert">${escapeHtml(problem)}</p>`}
<form method="post">
<label for="number">Card number</label>
<input id="number" name="number" inputmode="numeric" autocomplete="off" required value="4242 4242 4242 4242">
<label for="expiry">Expires (MM/YY)</label>
<input id="expiry" name="expiry" autocomplete="off" required value="12/34">
<label for="cvc">Security code</label>
<input id="cvc" name="cvc" inputmode="numeric" autocomplete="off" required value="123">
<button>${session.mode === 'setup' ? 'Save the card' : 'Pay'}</button>
</form>
<p><a href="${escapeHtml(session.cancel_url)}">Back without paying</a></p>
<table><caption>Test cards</caption>${rows}</table>`
  return page(printTitle(session), content, problem === null ? 200 : HTTP_BAD_INPUT)
}

const confirmPage = (session: Session): WholeAnswer =>
  page(
    '3-D Secure',
    `<p>Your bank asks whether it is you who pays: ${escapeHtml(printTitle(session))}.</p>
<form method="post">
<button name="answer" value="confirm">Confirm</button>
<button name="answer" value="deny">It was not me</button>
</form>`,
  )

const findSession = ({ world, path }: ReceivedRequest): { book: PaymentBook; session: Session } => {
  const { book } = world.payments
  const session = book.kept.sessions[path[1] ?? '']
  if (session === undefined) throw new SimulatedFailure(404, 'not_found', 'There is no such page.')
  return { book, session }
}

const opened = (received: ReceivedRequest, answer: () => WholeAnswer): OpenedRequest => ({
  directives: [received.world.payments.book.directives],
  answer: ({ fault }) => (preventsWork(fault) ? page('', '') : answer()),
})

export const openPage = (received: ReceivedRequest): OpenedRequest => {
  const { book, session } = findSession(received)
  return opened(received, () => {
    if (book.now() >= session.expires_at) book.expire(session)
    if (session.status === 'complete') return redirect(session.success_url)
    if (session.status === 'expired') return page('This page has expired', '<p>Start again.</p>', 410)
    return book.kept.plans[session.id]?.waiting === null ? cardPage(session, null) : confirmPage(session)
  })
}

export const payPage = (received: ReceivedRequest): OpenedRequest => {
  const { book, session } = findSession(received)
  const fields = readFields(received.body.toString())
  return opened(received, () => {
    if (session.status !== 'open') return redirect(session.success_url)
    const plan = book.kept.plans[session.id]!
    const { waiting } = plan
    if (waiting !== null) {
      plan.waiting = null
      book.save()
      if (readText(fields, 'answer') === 'confirm') return complete(book, session, waiting)
      return cardPage(session, 'Your bank could not confirm that it is you. Try another card.')
    }
    const number = readText(fields, 'number') ?? ''
    const card = testCard(number)
    if (card === null) return cardPage(session, 'This is no test card.')
    if (card.present === 'paid') return complete(book, session, card.number)
    if (card.present !== 'confirm') return cardPage(session, card.present.message)
    plan.waiting = card.number
    book.save()
    return redirect(`/checkout/${session.id}`)
  })
}

/** Takes the money, and saves the card if requested. */
function complete(book: PaymentBook, session: Session, number: string): WholeAnswer {
  const plan = book.kept.plans[session.id]!
  const { customer, mode, amount_total: amount, currency } = session
  const brand = testCard(number)?.brand ?? 'visa'
  const method = plan.savesCard ? book.saveCard(number, brand, customer, DEFAULT_EXPIRY) : null
  session.status = 'complete'
  session.url = null
  if (mode === 'payment' && amount !== null && currency !== null) {
    const intent = book.newIntent({
      amount,
      currency,
      customer,
      payment_method: method?.id ?? null,
      metadata: plan.intentMetadata,
    })
    session.payment_status = 'paid'
    session.payment_intent = intent.id
    book.succeed(intent)
  }
  book.tell('checkout.session.completed', session)
  return redirect(session.success_url)
}
