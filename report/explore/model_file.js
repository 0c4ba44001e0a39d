// A model as a file that ictd.load_model reads: an .npz archive, a zip file without compression of .npy arrays.

// Little-endian bytes of whole numbers, each given with its number of bytes.
function bytesOf(...pairs) {
  const ofNumber = ([number, bytes]) => Array.from({ length: bytes }, (_, i) => Math.floor(number / 256 ** i) & 255);
  return pairs.flatMap(ofNumber);
}

// The .npy file of an array, by its type, its shape and its bytes.
function npyFile(type, shape, data) {
  const axes = shape.map((size) => `${size},`).join(" ");
  const header = `{'descr': '${type}', 'fortran_order': False, 'shape': (${axes}), }`;
  const padded = header.padEnd(128 - 10 - 1) + "\n"; // The data begin at a multiple of 64.
  const start = [0x93, ..."NUMPY".split("").map((letter) => letter.charCodeAt(0)), ...bytesOf([1, 1], [0, 1])];
  start.push(...bytesOf([padded.length, 2]), ...Array.from(padded, (letter) => letter.charCodeAt(0)));
  return Uint8Array.from([...start, ...data]);
}

// The checksum of a zip file's entries.
function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

// A zip file of files by name, without compression.
function zipFile(files) {
  const body = [];
  const directory = [];
  for (const [name, data] of Object.entries(files)) {
    const letters = Array.from(name, (letter) => letter.charCodeAt(0));
    // Version 2.0, no flags, no compression, 1 January 1980; checksum, sizes, length of the name, no extra field.
    const common = bytesOf([20, 2], [0, 2], [0, 2], [0, 2], [33, 2], [crc32(data), 4]);
    common.push(...bytesOf([data.length, 4], [data.length, 4], [letters.length, 2], [0, 2]));
    directory.push(...bytesOf([0x02014b50, 4], [20, 2]), ...common, ...bytesOf([0, 10], [body.length, 4]), ...letters);
    body.push(...bytesOf([0x04034b50, 4]), ...common, ...letters, ...data);
  }
  const count = Object.keys(files).length;
  const end = bytesOf([0x06054b50, 4], [0, 4], [count, 2], [count, 2], [directory.length, 4], [body.length, 4], [0, 2]);
  return Uint8Array.from([...body, ...directory, ...end]);
}

// The file of one model, or of several in a list, such as seeds.
function modelFile(weights, settings) {
  const several = Array.isArray(weights) ? weights : [weights];
  const lead = Array.isArray(weights) ? [weights.length] : [];
  const wide = 2 * several[0].states;
  const floats = (arrays) => arrays.flatMap((array) => [...new Uint8Array(Float64Array.from(array).buffer)]);
  return zipFile({
    "u.npy": npyFile("<f8", [...lead, wide], floats(several.map(({ u }) => u))),
    "A.npy": npyFile("<f8", [...lead, wide, wide], floats(several.map(({ A }) => A))),
    "depth.npy": npyFile("<i8", [], bytesOf([settings.depth, 8])),
    "discount.npy": npyFile("<f8", [], floats([[settings.discount]])),
    "scaled.npy": npyFile("|b1", [], [1]),
  });
}
