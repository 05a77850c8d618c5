export default { serverExternalPackages: ["postbell"] };
