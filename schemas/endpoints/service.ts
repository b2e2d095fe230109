/** How the service itself does, and this reference. No key is asked for. Source: decisions, "Every endpoint". */
import { z } from 'zod'
import type { Endpoint } from '../endpoint.ts'

const open = { method: 'GET', key: 'none', tag: 'Service', failures: [] } as const
const HTTP_FOUND = 302

const plain = (says: string) => [{ contentType: 'text/plain; charset=utf-8', says }] as const

export const serviceEndpoints: readonly Endpoint[] = [
  {
    ...open,
    path: '/healthz',
    isProbe: true,
    summary: 'Tell that the process lives.',
    answers: plain('ok'),
  },
  {
    ...open,
    path: '/readyz',
    isProbe: true,
    summary: 'Tell that every engine answers.',
    details: '503 with the reason in plain text while one does not, and while the service drains.',
    answers: plain('ready'),
  },
  {
    ...open,
    path: '/metrics',
    isProbe: true,
    summary: 'Give the metrics of the whole service.',
    answers: plain('Prometheus text.'),
  },
  {
    ...open,
    path: '/openapi.json',
    summary: 'Give this reference for programs.',
    answers: [
      {
        contentType: 'application/json',
        body: { name: 'OpenApiDocument', schema: z.looseObject({ openapi: z.string() }) },
      },
    ],
  },
  {
    ...open,
    path: '/docs',
    summary: 'Give this reference for people.',
    answers: [{ contentType: 'text/html; charset=utf-8', says: 'A page.' }],
  },
  { ...open, path: '/', summary: 'Go to the reference.', status: HTTP_FOUND, answers: [] },
]
