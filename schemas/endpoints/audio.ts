/** Music, speech, voices and transcripts. */
import { deletedRecord } from '../media/avatars.ts'
import { musicRequest, musicSubmitted, musicTask, musicTaskList } from '../media/music.ts'
import { speech, speechRequest, speechSubmitted, speechTask, speechTaskList } from '../media/speech.ts'
import { transcript, transcriptRequest } from '../media/transcripts.ts'
import { voiceList, voiceRecord, voiceRequest } from '../media/voices.ts'
import { jsonAnswer, type RouteDescription } from './endpoint.ts'
import { createEndpoint, describeTaskEndpoints, idPath, readEndpoint } from './media.ts'

const MUSIC = 'Music'
const SPEECH = 'Speech'
const VOICES = 'Voices'
const CUT_OFF = 'A call that is cut off is carried out and charged all the same.'

export const audioEndpoints: readonly RouteDescription[] = [
  {
    ...createEndpoint,
    name: 'makeMusic',
    tag: MUSIC,
    summary: 'Make two songs: a task to poll.',
    details:
      'From a prompt, or from lyrics to be sung. The flat price is held, charged where at least one song could be ' +
      'made, and refunded otherwise. A task that has not ended after 30 minutes is expired.',
    body: { name: 'MusicRequest', schema: musicRequest },
    example: { model: 'demo-music', prompt: 'A slow waltz about bread.' },
    answers: [jsonAnswer('MusicSubmitted', musicSubmitted)],
  },
  ...describeTaskEndpoints({
    names: ['listMusic', 'showMusic', 'cancelMusic', 'deleteMusicFiles'],
    tag: MUSIC,
    kind: 'music',
    one: 'a music task',
    name: 'MusicTask',
    task: musicTask,
    list: musicTaskList,
  }),
  {
    ...createEndpoint,
    name: 'makeSpeech',
    tag: SPEECH,
    summary: 'Speak a text.',
    details:
      'Charged by the characters of the input. With async: a task to poll. The answer is JSON with a link, or, where ' +
      'Accept names audio/* or application/octet-stream or the body a response_format, the sound itself; its link then ' +
      `is in the call log. ${CUT_OFF}`,
    body: { name: 'SpeechRequest', schema: speechRequest },
    example: { model: 'voice-tts-pro', input: 'Good morning.' },
    answers: [
      jsonAnswer('Speech', speech),
      jsonAnswer('SpeechSubmitted', speechSubmitted),
      { contentType: 'audio/mpeg', says: 'The sound, where the request asks for it.' },
    ],
    failures: [...createEndpoint.failures, 'not_found', 'idempotency_response_not_cached'],
  },
  ...describeTaskEndpoints({
    names: ['listSpeech', 'showSpeech', 'cancelSpeech', 'deleteSpeechFiles'],
    tag: SPEECH,
    kind: 'speech',
    one: 'a speech task',
    name: 'SpeechTask',
    task: speechTask,
    list: speechTaskList,
    listing: { details: 'Includes those whose request waited for the sound.' },
    cancelling: { details: 'Its status is then failed, with the code `task_cancelled`.' },
  }),
  {
    ...createEndpoint,
    name: 'cloneVoice',
    tag: VOICES,
    summary: 'Clone a voice from a recording.',
    details:
      'Billed by `voice-clone-pro`, for each call; refunded when it fails. The answer waits until the voice is ' +
      'ready, or with async does not.',
    body: { name: 'VoiceRequest', schema: voiceRequest },
    example: { name: 'Ada', audio_url: 'https://example.com/ada.mp3' },
    answers: [jsonAnswer('Voice', voiceRecord)],
  },
  {
    ...readEndpoint,
    name: 'listVoices',
    tag: VOICES,
    summary: "List the account's own voices, and the presets.",
    details: 'A voice works only at the provider that made it. Each lists the models that take it.',
    answers: [jsonAnswer('VoiceList', voiceList)],
    failures: ['rate_limit_exceeded'],
  },
  {
    ...readEndpoint,
    name: 'showVoice',
    tag: VOICES,
    summary: 'Get a voice.',
    pathParameters: idPath,
    answers: [jsonAnswer('Voice', voiceRecord)],
    failures: ['not_found', 'rate_limit_exceeded'],
  },
  {
    ...readEndpoint,
    name: 'deleteVoice',
    tag: VOICES,
    summary: 'Delete a voice that is ready or failed.',
    pathParameters: idPath,
    answers: [jsonAnswer('DeletedRecord', deletedRecord)],
    failures: ['invalid_request', 'not_found', 'task_not_cancellable', 'rate_limit_exceeded'],
  },
  {
    ...createEndpoint,
    name: 'extractTranscript',
    tag: 'Transcripts',
    summary: 'Transcribe the video of a share link.',
    details:
      'Billed by `video-transcript`, for each call that succeeds. The answer takes 5 to 40 seconds, at most 55: a ' +
      'client should wait for 90.',
    body: { name: 'TranscriptRequest', schema: transcriptRequest },
    example: { url: 'https://v.example.com/Xy12ab/' },
    answers: [jsonAnswer('Transcript', transcript)],
  },
]
